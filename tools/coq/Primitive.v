(** Proofs of networks that compare neighbours only. *)

From Coq Require Import Arith List Bool Lia.
Import ListNotations.
Require Import Claims Bits.
Local Open Scope nat_scope.

(** The zeros on the first i wires *)
Definition zeros_before (x : nat -> bool) (i : nat) : nat := zeros (map x (seq 0 i)).

(** Ranks are 0 ... k - 1 or n - k ... n - 1, each on the wire of its number; comparators are W:W+1; and the input of
    n - t ones that t zeros follow, for t = 0 ... n, comes out right. *)
Definition by_neighbours (n : nat) (ranked : list (nat * nat)) (todo : list numbered) : bool :=
  let network := map snd todo in
  let exchanges := map with_mask network in
  let k := length ranked in
  let all ws := forallb (fun w => mem w (map fst ranked)) ws in
  forallb (fun wr => fst wr =? snd wr) ranked && (all (seq 0 k) || all (seq (n - k) k))
  && forallb (fun c => (snd c =? S (fst c)) && (snd c <? n)) network
  && forallb (fun t =>
       let bits := fold_left (fun bits c => exchange_bits c bits) exchanges (mask (seq 0 (n - t))) in
       let right i := zeros_before (fun w => bit w bits) i =? Nat.min i t in
       forallb (fun wr => right (fst wr) && right (S (fst wr))) ranked) (seq 0 (S n)).

Lemma zeros_before_next x i : zeros_before x (S i) = zeros_before x i + if x i then 0 else 1.
Proof. unfold zeros_before. rewrite seq_S, map_app, zeros_app. simpl. lia. Qed.

Lemma zeros_before_exchange w x : forall i,
  zeros_before (exchange implb (w, S w) x) i
  = if i =? S w then Nat.min (zeros_before x w + 1) (zeros_before x (S (S w))) else zeros_before x i.
Proof.
  assert (at_w : exchange implb (w, S w) x w = x w && x (S w)).
  { unfold exchange. rewrite Nat.eqb_refl. now destruct (x w), (x (S w)). }
  assert (behind_w : exchange implb (w, S w) x (S w) = x w || x (S w)).
  { unfold exchange. rewrite (proj2 (Nat.eqb_neq (S w) w)), Nat.eqb_refl by lia. now destruct (x w), (x (S w)). }
  induction i as [|i IH]; [reflexivity|]. rewrite !zeros_before_next, IH. clear IH.
  destruct (Nat.eqb_spec i (S w)) as [E|H1]; [|destruct (Nat.eqb_spec (S i) (S w)) as [E|H2]].
  - subst i. rewrite (proj2 (Nat.eqb_neq (S (S w)) (S w))) by lia.
    rewrite behind_w, !zeros_before_next. destruct (x w), (x (S w)); simpl; lia.
  - injection E as E. subst i. rewrite at_w. destruct (x w), (x (S w)); simpl; lia.
  - now rewrite exchange_other by (simpl; lia).
Qed.

(** More zeros in front stay in front. *)
Lemma more_zeros_before n net : (forall c, In c net -> snd c = S (fst c) /\ snd c < n) -> forall x y,
  (forall i, i <= n -> zeros_before y i <= zeros_before x i) ->
  forall i, i <= n -> zeros_before (run01 net y) i <= zeros_before (run01 net x) i.
Proof.
  induction net as [|[w v] net IH]; intros Hnet x y H i Hi; [now apply H|]. rewrite !run_cons.
  destruct (Hnet (w, v)) as (E & Hv); [now left|]. cbn [fst snd] in E, Hv. subst v.
  apply IH; auto. { intros. apply Hnet. now right. }
  intros j Hj. rewrite !zeros_before_exchange. pose proof (H j Hj). pose proof (H w). pose proof (H (S (S w))).
  destruct (j =? S w); lia.
Qed.

Lemma zeros_before_more x i d : zeros_before x i <= zeros_before x (i + d) <= zeros_before x i + d.
Proof.
  induction d; rewrite ?Nat.add_0_r, ?Nat.add_succ_r; [lia|]. rewrite zeros_before_next. destruct (x _); lia.
Qed.

Lemma zeros_before_reversed n t i : t <= n -> i <= n ->
  zeros_before (fun w => mem w (seq 0 (n - t))) i = i - (n - t).
Proof.
  intros Ht. induction i as [|i IH]; intro Hi; [reflexivity|]. rewrite zeros_before_next, IH by lia.
  destruct (mem i (seq 0 (n - t))) eqn:E.
  - apply mem_In, in_seq in E. lia.
  - assert (~ i < n - t); [|lia]. intro. assert (mem i (seq 0 (n - t)) = true); [|congruence].
    apply mem_In, in_seq. lia.
Qed.

Lemma zeros_before_ext x y i : (forall w, x w = y w) -> zeros_before x i = zeros_before y i.
Proof. intro H. unfold zeros_before. f_equal. now apply map_ext. Qed.

(** de Bruijn 1974: what is right for the reversed inputs is right for all. *)
Theorem by_neighbours_right n ranked todo : by_neighbours n ranked todo = true ->
  forall w r, In (w, r) ranked -> r < n -> forall x, right01 n (map snd todo) w r x.
Proof.
  unfold by_neighbours. set (net := map snd todo). rewrite !andb_true_iff, !forallb_forall.
  intros (((Hown & _) & Hnet) & Hright) w r Hr Hn x.
  specialize (Hown _ Hr). apply Nat.eqb_eq in Hown. simpl in Hown. subst r.
  assert (neighbours : forall c, In c net -> snd c = S (fst c) /\ snd c < n).
  { intros c Hc. specialize (Hnet c Hc). apply andb_true_iff in Hnet as (H1 & H2).
    now apply Nat.eqb_eq in H1; apply Nat.ltb_lt in H2. }
  set (t := zeros (map x (seq 0 n))). fold (zeros_before x n) in t.
  assert (Ht : t <= n) by (pose proof (zeros_before_more x 0 n); simpl in *; lia).
  set (y := fun w => mem w (seq 0 (n - t))).
  assert (least : forall i, i <= n -> zeros_before (run01 net y) i <= zeros_before (run01 net x) i).
  { apply more_zeros_before; auto. intros i Hi. unfold y. rewrite zeros_before_reversed by auto.
    pose proof (zeros_before_more x i (n - i)) as M. replace (i + (n - i)) with n in M by lia. fold t in M. lia. }
  assert (total : zeros_before (run01 net x) n = t).
  { unfold t. generalize x. clear - neighbours. induction net as [|[v v'] net IH]; intro x; [reflexivity|].
    rewrite run_cons, IH by (intros; apply neighbours; now right).
    destruct (neighbours (v, v')) as (E & Hv); [now left|]. cbn [fst snd] in E, Hv. subst v'.
    rewrite zeros_before_exchange. destruct (Nat.eqb_spec n (S v)); lia. }
  assert (squeeze : forall i, i <= n -> zeros_before (run01 net y) i = Nat.min i t ->
                    zeros_before (run01 net x) i = Nat.min i t).
  { intros i Hi E. pose proof (least i Hi). pose proof (zeros_before_more (run01 net x) 0 i) as M1.
    pose proof (zeros_before_more (run01 net x) i (n - i)) as M2. replace (i + (n - i)) with n in M2 by lia.
    simpl in M1. change (zeros_before (run01 net x) 0) with 0 in M1. lia. }
  specialize (Hright t ltac:(apply in_seq; lia)). rewrite forallb_forall in Hright. specialize (Hright _ Hr).
  apply andb_true_iff in Hright as (H1 & H2). cbn [fst] in H1, H2. apply Nat.eqb_eq in H1, H2.
  rewrite (zeros_before_ext _ (run01 net y)) in H1, H2
    by (intro v; rewrite exchanges_are_run; apply run_ext; intro; apply bit_mask).
  apply squeeze in H1, H2; try lia. rewrite zeros_before_next, H1 in H2. red. fold (zeros_before x n). fold t.
  symmetry. destruct (run01 net x w); [apply Nat.leb_le|apply Nat.leb_gt]; lia.
Qed.
