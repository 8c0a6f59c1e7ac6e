(** Proofs by merges. *)

From Coq Require Import Arith NArith List Bool Permutation Lia.
Import ListNotations.
Require Import Claims Bits.
Local Open Scope nat_scope.

(** ** How a merge goes

    Nothing is proved of these functions. They say which comparators a merge takes, and [merge_is_right] checks that
    these merge all runs of zeros and ones. *)

(** An entry of a list that is merged *)
Inductive entry : Type := Least | At (w : nat) | Greatest.

(** The comparators that a merge took, last to first, and those that are left *)
Definition progress : Type := list comparator * list numbered.

(** Take the next comparator of both wires: it, and the others. *)
Fixpoint take_next (u v : nat) (todo : list numbered) : option (comparator * list numbered) :=
  match todo with
  | [] => None
  | (i, (lo, hi)) :: todo =>
      if (lo =? u) && (hi =? v) || (lo =? v) && (hi =? u) then Some ((lo, hi), todo)
      else if mem lo [u; v] || mem hi [u; v] then None
      else match take_next u v todo with
           | Some (c, todo) => Some (c, (i, (lo, hi)) :: todo)
           | None => None
           end
  end.

(** The minimum and the maximum of two entries *)
Definition compare (e f : entry) (p : progress) : option (entry * entry * progress) :=
  match e, f with
  | At u, At v =>
      match take_next u v (snd p) with
      | Some ((lo, hi), todo) => Some (At lo, At hi, ((lo, hi) :: fst p, todo))
      | None => None
      end
  | Greatest, e | e, Greatest => Some (e, Greatest, p)
  | Least, e | e, Least => Some (Least, e, p)
  end.

(** Entry i of the one list with entry i of the other one: the minima, and the maxima *)
Fixpoint compare_all (es fs : list entry) (p : progress) : option (list entry * list entry * progress) :=
  match es, fs with
  | e :: es, f :: fs =>
      match compare e f p with
      | Some (smaller, larger, p) =>
          match compare_all es fs p with
          | Some (minima, maxima, p) => Some (smaller :: minima, larger :: maxima, p)
          | None => None
          end
      | None => None
      end
  | _, _ => Some ([], [], p)
  end.

(** Clean a list of 2^k entries. *)
Fixpoint clean (k : nat) (es : list entry) (p : progress) : option (list entry * progress) :=
  match k with
  | O => Some (es, p)
  | S k =>
      match compare_all (firstn (2 ^ k) es) (skipn (2 ^ k) es) p with
      | Some (minima, maxima, p) =>
          match clean k minima p with
          | Some (first, p) =>
              match clean k maxima p with
              | Some (second, p) => Some (first ++ second, p)
              | None => None
              end
          | None => None
          end
      | None => None
      end
  end.

(** The entries at even places, and those at odd places *)
Fixpoint deal {A} (l : list A) : list A * list A :=
  match l with
  | [] => ([], [])
  | a :: l => let (even, odd) := deal l in (a :: odd, even)
  end.

(** The members of two lists of the same length by turns *)
Fixpoint in_turn {A} (l l' : list A) : list A :=
  match l, l' with
  | a :: l, b :: l' => a :: b :: in_turn l l'
  | _, _ => []
  end.

(** The depth is at least the number of all entries. *)
Fixpoint odd_even (depth : nat) (a b : list entry) (p : progress) : option (list entry * progress) :=
  match depth, a, b with
  | _, [], l | _, l, [] => Some (l, p)
  | _, [e], [f] =>
      match compare e f p with
      | Some (smaller, larger, p) => Some ([smaller; larger], p)
      | None => None
      end
  | O, _, _ => None
  | S depth, _, _ =>
      let (a_even, a_odd) := deal a in
      let (b_even, b_odd) := deal b in
      match odd_even depth a_even b_even p with
      | Some (v, p) =>
          match odd_even depth a_odd b_odd p with
          | Some (w, p) =>
              let common := Nat.min (length w) (length v - 1) in
              match compare_all (firstn common w) (firstn common (tl v)) p with
              | Some (minima, maxima, p) =>
                  Some (firstn 1 v ++ in_turn minima maxima ++ skipn common (tl v) ++ skipn common w, p)
              | None => None
              end
          | None => None
          end
      | None => None
      end
  end.

Definition is_power (m : nat) : bool := (1 <=? m) && (m =? 2 ^ Nat.log2_up m).

(** The new run, and the comparators to take, first to last *)
Definition plan (name : merging) (fill : filling) (a b : list nat) (todo : list numbered)
    : option (list nat * list comparator) :=
  let size := 2 ^ Nat.log2_up (Nat.max (length a) (length b)) in
  let filled (l : list nat) :=
    let infinite e := repeat e (size - length l) in
    match fill with
    | Fill_none => map At l
    | Fill_above => map At l ++ infinite Greatest
    | Fill_below => infinite Least ++ map At l
    end in
  let merged :=
    match name with
    | Bitonic =>
        if (length (filled a) =? length (filled b)) && is_power (length (filled a))
        then clean (S (Nat.log2_up (length (filled a)))) (filled a ++ rev (filled b)) ([], todo)
        else None
    | Odd_even => odd_even (length (filled a ++ filled b)) (filled a) (filled b) ([], todo)
    end in
  match merged with
  | Some (es, (taken, _)) => Some (flat_map (fun e => match e with At w => [w] | _ => [] end) es, rev taken)
  | None => None
  end.

(** ** The steps *)

(** The values of wires ascend. *)
Fixpoint ascending (bits : N) (ws : list nat) : bool :=
  match ws with
  | [] => true
  | w :: ws => if bit w bits then forallb (fun v => bit v bits) ws else ascending bits ws
  end.

(** The comparators are on wires of the runs a and b, and leave an ascending run for all their zeros and ones. *)
Definition merge_is_right (a b run : list nat) (taken : list comparator) : bool :=
  let both := mask (a ++ b) in
  let exchanges := map with_mask taken in
  forallb (fun c => bit (fst c) both && bit (snd c) both) taken
  && forallb (fun w => bit w both) run && (length run =? length (a ++ b))
  && forallb (fun i => forallb (fun j =>
       ascending (fold_left (fun bits c => exchange_bits c bits) exchanges (mask (skipn i a ++ skipn j b))) run)
       (seq 0 (S (length b)))) (seq 0 (S (length a))).

(** Take these comparators: those that are left, if each is the next one of both its wires. *)
Fixpoint take_all (cs : list comparator) (todo : list numbered) : option (list numbered) :=
  match cs with
  | [] => Some todo
  | (lo, hi) :: cs =>
      match take_next lo hi todo with
      | Some ((lo', hi'), todo) => if (lo' =? lo) && (hi' =? hi) then take_all cs todo else None
      | None => None
      end
  end.

(** The first run of some kind, and the others *)
Fixpoint find_run (f : list nat -> bool) (runs : list (list nat)) : option (list nat * list (list nat)) :=
  match runs with
  | [] => None
  | run :: rest =>
      if f run then Some (run, rest)
      else match find_run f rest with
           | Some (found, others) => Some (found, run :: others)
           | None => None
           end
  end.

(** A run is named by the least of its wires. *)
Definition is_named (name : nat) (run : list nat) : bool := mem name run && forallb (fun w => name <=? w) run.

(** Wire u stands before wire v. *)
Fixpoint before (u v : nat) (run : list nat) : bool :=
  match run with
  | [] => false
  | w :: run => if w =? u then mem v run else before u v run
  end.

(** A run behind a comparator of two of its wires *)
Definition inside (c : comparator) (runs : list (list nat)) : option (list (list nat)) :=
  let (lo, hi) := c in
  match find_run (fun run => mem lo run && mem hi run) runs with
  | Some (run, rest) =>
      if before lo hi run then Some runs
      else if before hi lo run
      then Some (map (fun w => if w =? lo then hi else if w =? hi then lo else w) run :: rest)
      else None
  | None => None
  end.

(** The comparators that were not taken, in the order of their numbers *)
Fixpoint inside_all (runs : list (list nat)) (todo : list numbered) : option (list (list nat)) :=
  match todo with
  | [] => Some runs
  | (_, c) :: todo => match inside c runs with Some runs => inside_all runs todo | None => None end
  end.

(** There is one run, of all wires, and a wire of rank r is at place r. *)
Definition one_run (n : nat) (ranked : list (nat * nat)) (runs : list (list nat)) : bool :=
  match runs with
  | [run] => (length run =? n) && forallb (fun wr => nth (snd wr) run n =? fst wr) ranked
  | _ => false
  end.

(** Follow the steps, then take the comparators that are left. *)
Fixpoint by_merges (n : nat) (ranked : list (nat * nat)) (steps : list merge_step) (runs : list (list nat))
    (todo : list numbered) : bool :=
  match steps with
  | [] => match inside_all runs todo with Some runs => one_run n ranked runs | None => false end
  | Inside i :: steps =>
      match next_comparator i todo with
      | Some (lo, hi) =>
          match take_all [(lo, hi)] todo, inside (lo, hi) runs with
          | Some todo, Some runs => by_merges n ranked steps runs todo
          | _, _ => false
          end
      | None => false
      end
  | Merge name fill na nb :: steps =>
      match find_run (is_named na) runs with
      | Some (a, rest) =>
          match find_run (is_named nb) rest with
          | Some (b, rest) =>
              match plan name fill a b todo with
              | Some (run, taken) =>
                  match take_all taken todo with
                  | Some todo =>
                      distinct run && merge_is_right a b run taken && by_merges n ranked steps (run :: rest) todo
                  | None => false
                  end
              | None => false
              end
          | None => false
          end
      | None => false
      end
  end.

(** ** Merges are sound *)

Lemma take_next_correct u v todo : forall c left, take_next u v todo = Some (c, left) ->
  (c = (u, v) \/ c = (v, u))
  /\ forall s w, run01 (map snd todo) s w = run01 (map snd left) (exchange implb c s) w.
Proof.
  induction todo as [|[i [lo hi]] todo IH]; intros c left; cbn [take_next]; [easy|].
  destruct ((lo =? u) && (hi =? v) || (lo =? v) && (hi =? u)) eqn:E.
  { intro H. injection H as <- <-. split; auto. rewrite orb_true_iff, !andb_true_iff, !Nat.eqb_eq in E.
    destruct E as [(-> & ->)|(-> & ->)]; auto. }
  destruct (mem lo [u; v] || mem hi [u; v]) eqn:F; [easy|].
  destruct (take_next u v todo) as [[d left']|]; [|easy]. intro H. injection H as <- <-.
  destruct (IH _ _ eq_refl) as (Hd & Hrun). split; auto. intros s w. cbn [map snd]. rewrite !run_cons, Hrun.
  apply run_ext. intro w'. apply exchange_commutes. clear - F Hd. unfold mem in F. simpl in F.
  rewrite !orb_false_iff, !Nat.eqb_neq in F. destruct Hd as [->| ->]; unfold disjoint; simpl; intuition congruence.
Qed.

Lemma take_all_correct cs : forall todo left, take_all cs todo = Some left ->
  forall s w, run01 (map snd todo) s w = run01 (map snd left) (run01 cs s) w.
Proof.
  induction cs as [|[lo hi] cs IH]; intros todo left; cbn [take_all]. { intro H. now injection H as <-. }
  destruct (take_next lo hi todo) as [[[lo' hi'] todo']|] eqn:T; [|easy].
  destruct ((lo' =? lo) && (hi' =? hi)) eqn:E; [|easy].
  apply andb_true_iff in E as (E1 & E2). apply Nat.eqb_eq in E1, E2. subst lo' hi'.
  intros H s w. destruct (take_next_correct _ _ _ _ _ T) as (_ & Hrun). rewrite Hrun, (IH _ _ H).
  now rewrite run_cons.
Qed.

Lemma ascending_ascends bits ws : ascending bits ws = true -> ascend01 (map (fun w => bit w bits) ws).
Proof.
  induction ws as [|w ws IH]; simpl; [constructor|]. destruct (bit w bits); intro H.
  - rewrite forallb_forall in H. constructor; [|apply Forall_map, Forall_forall; auto].
    clear - H. induction ws as [|v ws IH]; [constructor|]. simpl in H. constructor.
    + apply IH. auto.
    + apply Forall_map, Forall_forall. intros u Hu. rewrite (H u) by auto. now destruct (bit v bits).
  - constructor; [now apply IH|]. now apply Forall_map, Forall_forall.
Qed.

Lemma find_run_permutation f : forall runs run rest, find_run f runs = Some (run, rest) ->
  f run = true /\ Permutation runs (run :: rest).
Proof.
  induction runs as [|run runs IH]; intros found others; simpl; [easy|].
  destruct (f run) eqn:E. { intro H. now injection H as <- <-. }
  destruct (find_run f runs) as [[found' others']|]; [|easy]. intro H. injection H as <- <-.
  destruct (IH _ _ eq_refl) as (Hf & Hp). split; auto. rewrite Hp. apply perm_swap.
Qed.

Lemma before_In u v run : before u v run = true -> In u run /\ In v run.
Proof.
  induction run as [|w run IH]; simpl; [easy|]. destruct (Nat.eqb_spec w u) as [->|]; [|intro H; destruct (IH H); auto].
  intro H. apply mem_In in H. auto.
Qed.

Lemma before_ascends u v run s : before u v run = true -> ascend01 (map s run) -> implb (s u) (s v) = true.
Proof.
  induction run as [|w run IH]; simpl; [easy|]. intros H Hs. inversion_clear Hs as [|? ? Hs' Hw].
  destruct (Nat.eqb_spec w u) as [->|]; [|now apply IH]. apply mem_In in H.
  rewrite Forall_map, Forall_forall in Hw. auto.
Qed.

(** A network keeps the number of zeros. *)
Lemma zeros_kept ws net : NoDup ws -> (forall c, In c net -> In (fst c) ws /\ In (snd c) ws) -> forall s,
  zeros (map (run01 net s) ws) = zeros (map s ws).
Proof.
  intro Hd. induction net as [|c net IH]; intros Hnet s; auto. rewrite run_cons, IH by (intros; apply Hnet; now right).
  destruct (Hnet c) as (H1 & H2); [now left|]. now apply zeros_permutation, exchange_within.
Qed.

Section Runs.
  Variables (n : nat) (ranked : list (nat * nat)) (network : list comparator) (admissible : (nat -> bool) -> Prop).

  (** Each admissible input leads to values s that ascend in each run, and from which the comparators todo lead to the
      outputs of the network. *)
  Definition ordered (runs : list (list nat)) (todo : list numbered) : Prop :=
    NoDup (concat runs) /\ (forall w, In w (concat runs) -> w < n)
    /\ forall x, admissible x -> exists s,
         (forall w r, In (w, r) ranked -> run01 (map snd todo) s w = run01 network x w)
         /\ zeros (map s (seq 0 n)) = zeros (map x (seq 0 n))
         /\ forall run, In run runs -> ascend01 (map s run).

  Lemma ordered_permutation runs runs' todo : Permutation runs runs' -> ordered runs todo -> ordered runs' todo.
  Proof.
    intros H (Hd & Hn & Hx).
    assert (Hp : Permutation (concat runs) (concat runs')).
    { pose proof (Permutation_flat_map (fun run => run) H) as P. now rewrite !flat_map_concat_map, !map_id in P. }
    repeat split.
    - now apply Permutation_NoDup with (1 := Hp).
    - intros w Hw. apply Hn. now apply Permutation_in with (1 := Permutation_sym Hp).
    - intros x Hadm. destruct (Hx x Hadm) as (s & H1 & H2 & H3). exists s. repeat split; auto.
      intros run Hr. apply H3. now apply Permutation_in with (1 := Permutation_sym H).
  Qed.

  (** Runs a and b give place to one of their wires, which ascends behind comparators on these wires. *)
  Lemma replace_runs a b run rest cs todo left : take_all cs todo = Some left -> NoDup run ->
    (forall c, In c cs -> In (fst c) (a ++ b) /\ In (snd c) (a ++ b)) -> (forall w, In w run -> In w (a ++ b)) ->
    (forall s, ascend01 (map s a) -> ascend01 (map s b) -> ascend01 (map (run01 cs s) run)) ->
    ordered (a :: b :: rest) todo -> ordered (run :: rest) left.
  Proof.
    intros T Hrun Hcs Hsub Hright (Hd & Hn & Hx). simpl in Hd, Hn. rewrite app_assoc in Hd, Hn.
    assert (Hout : forall w, In w (a ++ b) -> ~ In w (concat rest)) by (intros w; now apply distinct_parts).
    split; [|split].
    - simpl. clear - Hd Hrun Hsub Hout. induction Hrun as [|w run Hw Hrun IH]; simpl.
      + revert Hd. generalize (a ++ b). intro l. clear. induction l; simpl; auto. intro H. inversion_clear H. auto.
      + constructor; [|apply IH; intros; apply Hsub; now right]. rewrite in_app_iff. intros [H|H]; [auto|].
        apply (Hout w); auto. apply Hsub. now left.
    - intros w Hw. apply Hn. simpl in Hw. apply in_app_iff in Hw as [Hw|Hw]; apply in_app_iff; auto.
    - intros x Hadm. destruct (Hx x Hadm) as (s & H1 & H2 & H3). exists (run01 cs s). repeat split.
      + intros w r Hr. rewrite <- (take_all_correct _ _ _ T). eauto.
      + rewrite zeros_kept; [auto|apply seq_NoDup|]. intros c Hc. destruct (Hcs c Hc).
        split; apply in_seq; split; try lia; apply Hn; rewrite in_app_iff; auto.
      + intros g [<-|Hg]; [apply Hright; apply H3; simpl; auto|].
        rewrite (map_ext_in _ s); [apply H3; simpl; auto|]. intros w Hw. apply run_other.
        intros c Hc. destruct (Hcs c Hc).
        assert (Hw' : In w (concat rest)) by (apply in_concat; now exists g).
        split; intros ->; revert Hw'; now apply Hout.
  Qed.

  Lemma merge_ordered a b run rest cs todo left : take_all cs todo = Some left -> distinct run = true ->
    merge_is_right a b run cs = true -> ordered (a :: b :: rest) todo -> ordered (run :: rest) left.
  Proof.
    unfold merge_is_right. rewrite !andb_true_iff, !forallb_forall. intros T Hd (((Hcs & Hrun) & _) & Hright) I.
    assert (both : forall w, bit w (mask (a ++ b)) = true -> In w (a ++ b)) by (intro; rewrite bit_mask; apply mem_In).
    assert (NoDup a /\ NoDup b) as (Ha & Hb).
    { destruct I as (H & _). simpl in H. split; [|apply distinct_part in H; auto].
      apply (distinct_part [] a (b ++ concat rest) H). }
    assert (within : forall c, In c cs -> In (fst c) (a ++ b) /\ In (snd c) (a ++ b)).
    { intros c Hc. specialize (Hcs c Hc). apply andb_true_iff in Hcs as (H1 & H2). auto. }
    apply (replace_runs a b run rest cs todo left T); auto. { now apply distinct_NoDup. }
    intros s Sa Sb. set (i := zeros (map s a)). set (j := zeros (map s b)).
    pose proof (zeros_at_most (map s a)) as La. pose proof (zeros_at_most (map s b)) as Lb.
    rewrite map_length in La, Lb.
    specialize (Hright i ltac:(apply in_seq; unfold i; lia)). rewrite forallb_forall in Hright.
    specialize (Hright j ltac:(apply in_seq; unfold j; lia)). apply ascending_ascends in Hright.
    erewrite map_ext_in; [exact Hright|]. intros w Hw. cbv beta. rewrite exchanges_are_run.
    apply run_within with (set := fun v => In v (a ++ b)); auto. intros v Hv.
    rewrite bit_mask. unfold mem at 1. rewrite existsb_app. fold (mem v (skipn i a)) (mem v (skipn j b)).
    unfold i, j. rewrite !presorted_wires by auto. rewrite <- andb_orb_distrib_l.
    unfold mem. rewrite <- existsb_app. fold (mem v (a ++ b)). now rewrite (proj2 (mem_In v (a ++ b)) Hv).
  Qed.

  Lemma inside_ordered c runs runs' todo left : inside c runs = Some runs' -> take_all [c] todo = Some left ->
    ordered runs todo -> ordered runs' left.
  Proof.
    destruct c as [lo hi]. unfold inside.
    destruct (find_run _ runs) as [[run rest]|] eqn:F; [|easy]. intros E T I.
    apply find_run_permutation in F as (_ & Hp).
    assert (Hdone : ordered (run :: [] :: rest) todo).
    { apply ordered_permutation with ([] :: runs); [rewrite Hp; apply perm_swap|].
      destruct I as (Hd & Hn & Hx). repeat split; auto. intros x Hadm. destruct (Hx x Hadm) as (s & H1 & H2 & H3).
      exists s. repeat split; auto. intros g [<-|Hg]; auto. constructor. }
    assert (Hd : NoDup run) by (destruct Hdone as (H & _); now apply (distinct_part [] run) in H).
    destruct (before lo hi run) eqn:B.
    - injection E as <-. apply ordered_permutation with (1 := Permutation_sym Hp).
      destruct (before_In _ _ _ B). apply (replace_runs run [] run rest [(lo, hi)] todo left T); auto.
      + intros c [<-|[]]. rewrite app_nil_r. auto.
      + intros w Hw. now rewrite app_nil_r.
      + intros s Hs _. pose proof (before_ascends _ _ _ _ B Hs) as L. rewrite (map_ext _ s); auto.
        intro w. simpl. rewrite L. destruct (Nat.eqb_spec w lo) as [E1|]; [now rewrite E1|].
        destruct (Nat.eqb_spec w hi) as [E2|]; [now rewrite E2|auto].
    - destruct (before hi lo run) eqn:B'; [|easy]. injection E as <-. destruct (before_In _ _ _ B') as (Hhi & Hlo).
      set (swap := fun w => if w =? lo then hi else if w =? hi then lo else w).
      assert (Hswap : forall w, swap (swap w) = w).
      { intro w. unfold swap. destruct (Nat.eqb_spec w lo) as [->|H1].
        - rewrite Nat.eqb_refl. destruct (Nat.eqb_spec hi lo); congruence.
        - destruct (Nat.eqb_spec w hi) as [->|H2]; [now rewrite Nat.eqb_refl|].
          now rewrite !(proj2 (Nat.eqb_neq _ _)) by auto. }
      apply (replace_runs run [] _ rest [(lo, hi)] todo left T); auto.
      + apply FinFun.Injective_map_NoDup; auto. intros u v E. now rewrite <- (Hswap u), E.
      + intros c [<-|[]]. rewrite app_nil_r. auto.
      + intros w Hw. rewrite app_nil_r. apply in_map_iff in Hw as (v & <- & Hv). unfold swap.
        destruct (v =? lo); auto. destruct (v =? hi); auto.
      + intros s Hs _. pose proof (before_ascends _ _ _ _ B' Hs) as L. rewrite map_map, (map_ext _ s); auto.
        intro w. unfold swap. destruct (Nat.eqb_spec w lo) as [E1|H1]; [|destruct (Nat.eqb_spec w hi) as [E2|H2]].
        * rewrite E1. simpl. destruct (Nat.eqb_spec hi lo) as [E|E]; [rewrite E; now destruct (s lo)|].
          rewrite Nat.eqb_refl. destruct (s lo), (s hi); simpl in *; congruence.
        * rewrite E2. simpl. rewrite Nat.eqb_refl. destruct (s lo), (s hi); simpl in *; congruence.
        * now apply exchange_other.
  Qed.

  Lemma take_first i c todo : take_all [c] ((i, c) :: todo) = Some todo.
  Proof. destruct c as [lo hi]. simpl. rewrite !Nat.eqb_refl. simpl. now rewrite !Nat.eqb_refl. Qed.

  Lemma inside_all_ordered todo : forall runs runs', inside_all runs todo = Some runs' ->
    ordered runs todo -> ordered runs' [].
  Proof.
    induction todo as [|[i c] todo IH]; intros runs runs'; cbn [inside_all]. { intro E. now injection E as <-. }
    destruct (inside c runs) as [runs1|] eqn:E; [|easy]. intros F I.
    apply (IH _ _ F), (inside_ordered _ _ _ _ _ E (take_first i c todo)), I.
  Qed.

  Definition all_right_always : Prop :=
    forall w r, In (w, r) ranked -> r < n -> forall x, admissible x -> right01 n network w r x.

  Lemma one_run_right runs : one_run n ranked runs = true -> ordered runs [] -> all_right_always.
  Proof.
    destruct runs as [|run [|]]; [easy| |easy]. unfold one_run. rewrite andb_true_iff, forallb_forall, Nat.eqb_eq.
    intros (Hlength & Hplace) (Hd & Hn & Hx) w r Hr Hrn x Hadm. simpl in Hd, Hn. rewrite app_nil_r in Hd, Hn.
    destruct (Hx x Hadm) as (s & H1 & H2 & H3). red. rewrite <- (H1 w r Hr), <- H2.
    specialize (Hplace _ Hr). apply Nat.eqb_eq in Hplace. simpl in Hplace.
    assert (Hp : Permutation run (seq 0 n)).
    { apply NoDup_Permutation_bis; auto. { rewrite seq_length. lia. }
      intros v Hv. apply in_seq. specialize (Hn v Hv). lia. }
    rewrite <- (zeros_permutation _ _ (Permutation_map s Hp)).
    pose proof (number_of_zeros bool implb (fun b => b) (s n) (map s run)) as Z.
    rewrite map_id, map_length in Z. rewrite <- Z; [|easy|apply H3; now left|lia].
    rewrite map_nth, Hplace. reflexivity.
  Qed.

  Lemma by_merges_right steps : forall runs todo, by_merges n ranked steps runs todo = true ->
    ordered runs todo -> all_right_always.
  Proof.
    induction steps as [|[name fill na nb|i] steps IH]; intros runs todo; cbn [by_merges].
    - destruct (inside_all runs todo) as [runs'|] eqn:E; [|easy]. intros F I.
      apply (one_run_right runs' F), (inside_all_ordered _ _ _ E I).
    - destruct (find_run (is_named na) runs) as [[a rest]|] eqn:Ea; [|easy].
      destruct (find_run (is_named nb) rest) as [[b rest']|] eqn:Eb; [|easy].
      destruct (plan name fill a b todo) as [[run taken]|]; [|easy].
      destruct (take_all taken todo) as [left|] eqn:T; [|easy]. rewrite !andb_true_iff. intros ((Hd & Hright) & F) I.
      apply (IH _ _ F), (merge_ordered a b run rest' taken todo left T Hd Hright).
      apply ordered_permutation with (2 := I).
      apply find_run_permutation in Ea as (_ & Ea), Eb as (_ & Eb). now rewrite Ea, Eb.
    - destruct (next_comparator i todo) as [[lo hi]|]; [|easy].
      destruct (take_all [(lo, hi)] todo) as [left|] eqn:T; [|easy].
      destruct (inside (lo, hi) runs) as [runs'|] eqn:E; [|easy]. intros F I.
      apply (IH _ _ F), (inside_ordered _ _ _ _ _ E T), I.
  Qed.
End Runs.
