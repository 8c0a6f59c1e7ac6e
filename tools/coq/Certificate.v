(** A checker for certificates, [check], and its proof: [checked] at the end.

    The checker takes all methods of [docs/certificates.md] but [clauses]. *)

From Coq Require Import Arith NArith List Bool Permutation Sorted Lia.
Import ListNotations.
From Coq Require Import Extraction ExtrOcamlBasic.
Require Import Claims Bits Patterns Primitive Merges.
Local Open Scope nat_scope.

(** * The checker *)

Definition claim_wires (c : claim) : list nat := match c with Ranks _ ws => ws | Together _ ws => ws end.
Definition claim_first (c : claim) : nat := match c with Ranks r _ => r | Together r _ => r end.
Definition claim_ranks (c : claim) : list nat := seq (claim_first c) (length (claim_wires c)).

(** At least one wire, or two *)
Definition claim_rules (c : claim) : bool :=
  match c with
  | Ranks _ ws => 1 <=? length ws
  | Together _ ws => 2 <=? length ws
  end.

(** A comparator behind the network exchanges values within a set: both its wires or none are in each set, none are in
    [ranks], and there is a set that both are in. *)
Definition behind_rule (claims : list claim) (c : comparator) : bool :=
  let (lo, hi) := c in
  forallb (fun cl => match cl with
                     | Ranks _ ws => negb (mem lo ws) && negb (mem hi ws)
                     | Together _ ws => eqb (mem lo ws) (mem hi ws)
                     end) claims
  && existsb (fun cl => mem lo (claim_wires cl) && mem hi (claim_wires cl)) claims.

Definition wires_of (network : list comparator) : list nat := flat_map (fun c => [fst c; snd c]) network.

(** The rules of the page's section "The text" *)
Definition well_formed (c : certificate) : bool :=
  let network := concat (layers c) ++ behind c in
  let below_n := forallb (fun w => w <? wires c) in
  (1 <=? wires c)
  && forallb (fun layer => (1 <=? length layer) && distinct (wires_of layer)) (layers c)
  && forallb (fun c => negb (fst c =? snd c)) network && below_n (wires_of network)
  && forallb (fun ws => 2 <=? length ws) (presorted c)
  && distinct (concat (presorted c)) && below_n (concat (presorted c))
  && (1 <=? length (claims c)) && forallb claim_rules (claims c)
  && distinct (flat_map claim_wires (claims c)) && below_n (flat_map claim_wires (claims c))
  && distinct (flat_map claim_ranks (claims c)) && below_n (flat_map claim_ranks (claims c))
  && forallb (behind_rule (claims c)) (behind c).

(** Wires with their ranks. Wire number k of a set has rank k of the set, behind the comparators behind. *)
Definition ranked_wires (c : certificate) : list (nat * nat) :=
  flat_map (fun cl => combine (claim_wires cl) (claim_ranks cl)) (claims c).

(** The [presorted] lines, and each other wire *)
Definition groups (c : certificate) : list (list nat) :=
  presorted c ++ map (fun w => [w]) (filter (fun w => negb (mem w (concat (presorted c)))) (seq 0 (wires c))).

(** The network is that of the kept comparators; then the method decides. *)
Definition check (c : certificate) : bool :=
  well_formed c &&
  let network := concat (layers c) ++ behind c in
  let ranked := ranked_wires c in
  let todo := fst (keep (mask (map fst ranked)) (combine (seq 0 (length network)) network)) in
  let components := map component_of_group (groups c) in
  match proof c with
  | Exhaustion =>
      let (components, todo) := begin (wires c) ranked [] components todo in
      by_exhaustion (wires c) ranked (length components) components todo
  | Primitive => by_neighbours (wires c) ranked todo
  | Merges steps => by_merges (wires c) ranked steps (groups c) todo
  | Patterns steps =>
      let (components, todo) := begin (wires c) ranked [] components todo in
      by_patterns (wires c) ranked steps components todo
  end.

(** * Why the rules of the text are enough *)

Lemma filter_partition {A} (f : A -> bool) l : Permutation (filter f l ++ filter (fun a => negb (f a)) l) l.
Proof.
  induction l as [|a l IH]; simpl; auto. destruct (f a); simpl; [now constructor|].
  rewrite <- Permutation_middle. now constructor.
Qed.

Lemma concat_singles {A} (l : list A) : concat (map (fun a => [a]) l) = l.
Proof. induction l; simpl; auto. now f_equal. Qed.

Lemma groups_partition c : distinct (concat (presorted c)) = true ->
  forallb (fun w => w <? wires c) (concat (presorted c)) = true ->
  Permutation (concat (groups c)) (seq 0 (wires c)).
Proof.
  intros H1 H2. unfold groups. set (p := concat (presorted c)) in *. rewrite concat_app. fold p.
  rewrite concat_singles. rewrite forallb_forall in H2.
  etransitivity; [|apply (filter_partition (fun w => mem w p))]. apply Permutation_app; auto. apply NoDup_Permutation.
  - now apply distinct_NoDup.
  - apply NoDup_filter, seq_NoDup.
  - intro w. rewrite filter_In, mem_In, in_seq. split; [|easy]. intro H. split; auto.
    apply H2, Nat.ltb_lt in H. lia.
Qed.

(** ** Comparators behind the network *)

Section Behind.
  Variables (A : Type) (leb : A -> A -> bool).

  (** Comparators behind do not change the wires of [ranks], and exchange values within each set. *)
  Lemma behind_exchanges cls : NoDup (flat_map claim_wires cls) -> forall net, forallb (behind_rule cls) net = true ->
    forall cl, In cl cls -> forall x : nat -> A,
    match cl with
    | Ranks _ ws => map (run leb net x) ws = map x ws
    | Together _ ws => Permutation (map (run leb net x) ws) (map x ws)
    end.
  Proof.
    intros Hd net Hnet cl Hcl. induction net as [|c net IH]; intro x; [now destruct cl|].
    simpl in Hnet. apply andb_true_iff in Hnet as (Hc & Hnet). specialize (IH Hnet (exchange leb c x)).
    destruct c as [lo hi]. unfold behind_rule in Hc. apply andb_true_iff in Hc as (Hc & _).
    rewrite forallb_forall in Hc. specialize (Hc cl Hcl).
    assert (untouched : forall ws, mem lo ws = false -> mem hi ws = false ->
                        map (exchange leb (lo, hi) x) ws = map x ws).
    { intros ws H1 H2. apply map_ext_in. intros w Hw. apply mem_In in Hw.
      apply exchange_other; simpl; intros ->; congruence. }
    destruct cl as [first ws|first ws]; rewrite run_cons, IH.
    - apply andb_true_iff in Hc as (H1 & H2). apply negb_true_iff in H1, H2. auto.
    - apply eqb_prop in Hc. destruct (mem lo ws) eqn:E; [|now rewrite untouched].
      apply exchange_within; [|apply mem_In; cbn [fst snd]; congruence..].
      apply in_split in Hcl as (l & l' & ->). rewrite flat_map_app in Hd. simpl in Hd.
      now apply distinct_part in Hd.
  Qed.
End Behind.

(** * The checker is right *)

(** A wire of rank r is right for all admissible inputs of r or r + 1 zeros. *)
Lemma check_right c : check c = true -> forall w r, In (w, r) (ranked_wires c) -> r < wires c ->
  forall x, admissible01 (groups c) x -> let t := zeros (map x (seq 0 (wires c))) in t = r \/ t = S r ->
  right01 (wires c) (concat (layers c) ++ behind c) w r x.
Proof.
  unfold check. intro H. apply andb_true_iff in H as (Hwf & H).
  set (network := concat (layers c) ++ behind c) in *. set (ranked := ranked_wires c) in *.
  assert (partition : Permutation (concat (groups c)) (seq 0 (wires c))).
  { unfold well_formed in Hwf. rewrite !andb_true_iff in Hwf. apply groups_partition; tauto. }
  assert (I := invariant_in_the_beginning (wires c) ranked network (groups c) partition).
  set (todo := fst (keep _ _)) in *.
  assert (outputs : forall x w r, In (w, r) ranked -> run01 (map snd todo) x w = run01 network x w).
  { intros x w r Hr. now apply kept_outputs with (r := r). }
  intros w r Hr Hn x Hx. cbv zeta. intro Ht. assert (Hrel : relevant (wires c) ranked x) by (exists w, r; auto).
  destruct (proof c).
  - destruct (begin (wires c) ranked [] _ todo) as [components' todo'] eqn:B.
    apply (begin_invariant _ _ _ _ _ _ _ _ _ B) in I. exact (by_exhaustion_right _ _ _ _ _ _ _ H I w r Hr x Hx Hrel).
  - red. rewrite <- (outputs x w r Hr). apply (by_neighbours_right _ _ _ H); auto.
  - apply (by_merges_right (wires c) ranked network (admissible01 (groups c)) _ _ _ H); auto.
    split; [|split].
    + eapply Permutation_NoDup; [symmetry; exact partition|apply seq_NoDup].
    + intros v Hv. apply Permutation_in with (1 := partition), in_seq in Hv. lia.
    + intros y Hy. exists y. split; [|split]; [apply outputs|reflexivity|exact Hy].
  - destruct (begin (wires c) ranked [] _ todo) as [components' todo'] eqn:B.
    apply (begin_invariant _ _ _ _ _ _ _ _ _ B) in I. exact (by_patterns_right _ _ _ _ _ _ _ H I w r Hr x Hx Hrel).
Qed.

(** What the checker accepts is true. *)
Theorem checked : forall c, check c = true -> true_claims c.
Proof.
  intros c H. pose proof (check_right c H) as Hright.
  unfold check in H. apply andb_true_iff in H as (Hwf & _). unfold well_formed in Hwf. rewrite !andb_true_iff in Hwf.
  assert (partition : Permutation (concat (groups c)) (seq 0 (wires c))) by (apply groups_partition; tauto).
  assert (below : forall cl, In cl (claims c) -> claim_first cl + length (claim_wires cl) <= wires c).
  { assert (rules : forallb claim_rules (claims c) = true) by tauto.
    assert (ranks : forallb (fun r => r <? wires c) (flat_map claim_ranks (claims c)) = true) by tauto.
    rewrite forallb_forall in rules, ranks. intros cl Hcl. specialize (rules cl Hcl).
    set (last := claim_first cl + length (claim_wires cl) - 1).
    assert (1 <= length (claim_wires cl)) by (destruct cl; apply Nat.leb_le in rules; simpl; lia).
    assert (last < wires c); [|lia]. apply Nat.ltb_lt, ranks, in_flat_map. exists cl. split; auto. apply in_seq. lia. }
  assert (Hdistinct : NoDup (flat_map claim_wires (claims c))) by (apply distinct_NoDup; tauto).
  assert (Hbehind : forallb (behind_rule (claims c)) (behind c) = true) by tauto. clear Hwf.
  intros A leb order x Hx.
  destruct (ascending_order _ leb order (map x (seq 0 (wires c)))) as (l & Hp & Hl).
  assert (Hlength : length l = wires c) by now rewrite <- Hp, map_length, seq_length.
  exists l. split; [auto|split; [auto|]]. intros cl Hcl. specialize (below cl Hcl).
  assert (G : forall w r, In (w, r) (combine (claim_wires cl) (claim_ranks cl)) ->
              run leb (concat (layers c) ++ behind c) x w = nth r l (x 0)).
  { intros w r Hr. assert (Hn : r < wires c) by (apply in_combine_r, in_seq in Hr; lia).
    apply zero_one_principle with (n := wires c) (r := r) (admissible := admissible01 (groups c)); auto.
    - apply two_numbers_of_zeros with (groups := groups c); auto. intros y Hy t Ht.
      apply Hright; auto. apply in_flat_map. eauto.
    - intros u g Hg. apply in_app_iff in Hg as [Hg|Hg].
      + rewrite <- map_map. apply (ascend_map _ leb); auto. now apply above_monotone.
      + apply in_map_iff in Hg as (w' & <- & _). repeat constructor. }
  apply ranks_are_a_part in G; [|lia]. rewrite run_app in G.
  pose proof (behind_exchanges A leb (claims c) Hdistinct (behind c) Hbehind cl Hcl
                (run leb (concat (layers c)) x)) as B.
  destruct cl as [first ws|first ws]; simpl in *; [congruence|]. now rewrite <- B, G.
Qed.

(** For a sorting network: its outputs ascend, and are its inputs in some order. *)
Corollary sorting_network_sorts : forall c ws, check c = true ->
  presorted c = [] -> In (Ranks 0 ws) (claims c) -> length ws = wires c ->
  forall (A : Type) (leb : A -> A -> bool), total_order leb -> forall x : nat -> A,
  let outputs := map (run leb (concat (layers c)) x) ws in
  ascend leb outputs /\ Permutation (map x (seq 0 (wires c))) outputs.
Proof.
  intros c ws H Hpresorted Hclaim Hlength A leb order x outputs.
  destruct (checked c H A leb order x) as (l & Hp & Hl & Hright); [now rewrite Hpresorted|].
  specialize (Hright _ Hclaim). simpl in Hright. fold outputs in Hright.
  rewrite firstn_all2 in Hright; [now rewrite Hright|].
  rewrite <- (Permutation_length Hp), map_length, seq_length. lia.
Qed.

Extraction Language OCaml.
Extraction "certificate.ml" well_formed check.

Print Assumptions checked.
