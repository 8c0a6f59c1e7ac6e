(** What a certificate claims, and the 0-1 principle.

    The definitions say what [docs/certificates.md] says under "What is claimed"; who trusts the checker has to read
    them, down to [true_claims]. The rest of this file reduces the claims to inputs of zeros and ones. *)

From Coq Require Import Arith NArith List Bool Permutation Sorted Lia.
Import ListNotations.
Local Open Scope nat_scope.

(** * Networks *)

(** Wires are numbers. A comparator (LO, HI) leaves the smaller value on LO and the larger one on HI. *)
Definition comparator : Type := nat * nat.

Section Network.
  Variables (A : Type) (leb : A -> A -> bool).

  (** The values of all wires, [x w] on wire w, behind one comparator. *)
  Definition exchange (c : comparator) (x : nat -> A) : nat -> A := fun w =>
    let (lo, hi) := c in
    let (smaller, larger) := if leb (x lo) (x hi) then (x lo, x hi) else (x hi, x lo) in
    if w =? lo then smaller else if w =? hi then larger else x w.

  (** The values behind comparators that act one after the other. *)
  Definition run (network : list comparator) (x : nat -> A) : nat -> A :=
    fold_left (fun x c => exchange c x) network x.

  (** Any two values compare, in a transitive way; and only equal values are at most each other. *)
  Definition total_order : Prop :=
    (forall a b, leb a b = true \/ leb b a = true)
    /\ (forall a b c, leb a b = true -> leb b c = true -> leb a c = true)
    /\ (forall a b, leb a b = true -> leb b a = true -> a = b).

  (** Each value is at most as large as all that follow it. *)
  Definition ascend : list A -> Prop := StronglySorted (fun a b => leb a b = true).
End Network.

Arguments exchange {A}. Arguments run {A}. Arguments total_order {A}. Arguments ascend {A}.

(** * Certificates *)

(** [ranks R W W ...] and [set R W W ...] *)
Inductive claim : Type :=
  | Ranks (first : nat) (wires : list nat)
  | Together (first : nat) (wires : list nat).

(** [merge NAME FILL A B], and [inside C] *)
Inductive merging : Type := Bitonic | Odd_even.
Inductive filling : Type := Fill_none | Fill_above | Fill_below.
Inductive merge_step : Type :=
  | Merge (name : merging) (fill : filling) (a b : nat)
  | Inside (number : nat).

(** The proof. A step of [Patterns] is [join C COUNT]. *)
Inductive proof_method : Type :=
  | Exhaustion
  | Primitive
  | Merges (steps : list merge_step)
  | Patterns (steps : list (nat * N)).

(** A certificate, line by line. A comparator is (LO, HI), a presorted line its wires. *)
Record certificate : Type := {
  wires : nat;                        (** how many: they are 0 ... wires - 1 *)
  layers : list (list comparator);
  presorted : list (list nat);
  claims : list claim;
  behind : list comparator;
  proof : proof_method;
}.

(** A claim, for the inputs in ascending order and the outputs. *)
Definition true_claim {A} (inputs : list A) (output : nat -> A) (c : claim) : Prop :=
  match c with
  | Ranks first wires => map output wires = firstn (length wires) (skipn first inputs)
  | Together first wires => Permutation (map output wires) (firstn (length wires) (skipn first inputs))
  end.

(** All claims of a certificate, for each totally ordered set and all admissible inputs. *)
Definition true_claims (c : certificate) : Prop :=
  forall (A : Type) (leb : A -> A -> bool), total_order leb ->
  forall x : nat -> A, (forall ws, In ws (presorted c) -> ascend leb (map x ws)) ->
  exists inputs, Permutation (map x (seq 0 (wires c))) inputs /\ ascend leb inputs
  /\ forall cl, In cl (claims c) -> true_claim inputs (run leb (concat (layers c)) x) cl.

(** * Facts about networks *)

(** Parts of lists in which nothing stands twice *)
Lemma distinct_parts {A} (l l' : list A) a : NoDup (l ++ l') -> In a l -> ~ In a l'.
Proof.
  induction l as [|b l IH]; simpl; [easy|]. intros H [->|Ha]; inversion_clear H; [|auto].
  intro Hl'. apply H0, in_or_app. auto.
Qed.

Lemma distinct_part {A} (l m l' : list A) : NoDup (l ++ m ++ l') -> NoDup m.
Proof.
  induction l as [|a l IH]; [|intro H; inversion_clear H; auto]. clear. induction m as [|a m IH]; [constructor|].
  intro H. inversion_clear H. constructor; auto. intro Hm. apply H0, in_or_app. auto.
Qed.

Section Network_facts.
  Variables (A : Type) (leb : A -> A -> bool).

  Lemma exchange_ext c (x y : nat -> A) :
    (forall w, x w = y w) -> forall w, exchange leb c x w = exchange leb c y w.
  Proof. intros H w. destruct c as [lo hi]; simpl. now rewrite !H. Qed.

  Lemma run_ext net : forall x y : nat -> A,
    (forall w, x w = y w) -> forall w, run leb net x w = run leb net y w.
  Proof. induction net as [|c net IH]; simpl; auto. intros x y H. apply IH. now apply exchange_ext. Qed.

  Lemma run_cons c net (x : nat -> A) : run leb (c :: net) x = run leb net (exchange leb c x).
  Proof. reflexivity. Qed.

  Lemma run_app net net' (x : nat -> A) : run leb (net ++ net') x = run leb net' (run leb net x).
  Proof. apply fold_left_app. Qed.

  (** A comparator does not change other wires. *)
  Lemma exchange_other c (x : nat -> A) w : w <> fst c -> w <> snd c -> exchange leb c x w = x w.
  Proof.
    destruct c as [lo hi]; simpl. intros. destruct (leb _ _); now rewrite !(proj2 (Nat.eqb_neq _ _)) by assumption.
  Qed.

  Lemma run_other net : forall (x : nat -> A) w,
    (forall c, In c net -> w <> fst c /\ w <> snd c) -> run leb net x w = x w.
  Proof.
    induction net as [|c net IH]; simpl; auto. intros x w H. rewrite IH by auto.
    apply exchange_other; now apply H; left.
  Qed.

  (** The outputs of a comparator depend on its inputs alone. *)
  Lemma exchange_local c (x y : nat -> A) w :
    x (fst c) = y (fst c) -> x (snd c) = y (snd c) -> x w = y w -> exchange leb c x w = exchange leb c y w.
  Proof. destruct c as [lo hi]; simpl. now intros -> -> ->. Qed.

  Definition disjoint (c d : comparator) : Prop :=
    fst c <> fst d /\ fst c <> snd d /\ snd c <> fst d /\ snd c <> snd d.

  (** Comparators that have no wire in common may change places. *)
  Lemma exchange_commutes c d (x : nat -> A) w : disjoint c d ->
    exchange leb c (exchange leb d x) w = exchange leb d (exchange leb c x) w.
  Proof.
    intros (H1 & H2 & H3 & H4).
    destruct (Nat.eq_dec w (fst c)) as [E1|E1]; [|destruct (Nat.eq_dec w (snd c)) as [E2|E2]].
    1, 2: rewrite (exchange_other d (exchange leb c x)) by congruence;
      apply exchange_local; apply exchange_other; congruence.
    rewrite exchange_other by auto. apply exchange_local; symmetry; apply exchange_other; auto.
  Qed.

  Lemma exchange_run_commutes c net : forall x : nat -> A, (forall d, In d net -> disjoint c d) ->
    forall w, exchange leb c (run leb net x) w = run leb net (exchange leb c x) w.
  Proof.
    induction net as [|d net IH]; simpl; auto. intros x H w. rewrite IH by auto.
    apply run_ext. intro. apply exchange_commutes. auto.
  Qed.

  (** A comparator exchanges the values of its wires. *)
  Lemma exchange_within c (x : nat -> A) ws : NoDup ws -> In (fst c) ws -> In (snd c) ws ->
    Permutation (map (exchange leb c x) ws) (map x ws).
  Proof.
    destruct c as [lo hi]. cbn [fst snd]. intros Hd Hlo Hhi. destruct (Nat.eq_dec lo hi) as [->|Hne].
    { erewrite map_ext; [reflexivity|]. intro w. simpl. destruct (leb _ _); destruct (Nat.eqb_spec w hi); congruence. }
    apply in_split in Hlo as (l1 & l2 & ->). rewrite <- Permutation_middle in *.
    destruct Hhi as [|Hhi]; [congruence|].
    apply in_split in Hhi as (m1 & m2 & E). rewrite E, <- Permutation_middle in *. clear E l1 l2.
    simpl map at 1. rewrite Nat.eqb_refl. destruct (Nat.eqb_spec hi lo); [congruence|]. rewrite Nat.eqb_refl.
    rewrite (map_ext_in _ x (m1 ++ m2)).
    - destruct (leb _ _); [reflexivity|apply perm_swap].
    - intros w Hw. inversion_clear Hd as [|? ? H1 H2]. inversion_clear H2 as [|? ? H3 _].
      apply (exchange_other (lo, hi)); intros ->; [apply H1|apply H3]; simpl; auto.
  Qed.

  (** Each list has an ascending order. *)
  Lemma ascending_order : total_order leb -> forall l, exists l', Permutation l l' /\ ascend leb l'.
  Proof.
    intros (total & trans & _).
    assert (insert : forall a l, ascend leb l -> exists l', Permutation (a :: l) l' /\ ascend leb l').
    { intros a l. induction l as [|b l IH]; intro H.
      - exists [a]. repeat constructor.
      - inversion_clear H as [|? ? Hl Hb]. destruct (total a b) as [Hab|Hba].
        + exists (a :: b :: l). split; auto. repeat constructor; auto.
          apply Forall_impl with (2 := Hb). intros c Hc. now apply trans with b.
        + destruct (IH Hl) as (l' & Hp & Hs). exists (b :: l'). split.
          * rewrite perm_swap. now constructor.
          * constructor; auto. apply Permutation_Forall with (1 := Hp). now constructor. }
    induction l as [|a l (l1 & Hp & Hs)]. { exists []. repeat constructor. }
    destruct (insert a l1 Hs) as (l2 & Hp2 & Hs2). exists l2. split; auto.
    rewrite <- Hp2. now constructor.
  Qed.
End Network_facts.

Lemma skipn_nth {A} d r : forall l : list A, r < length l -> skipn r l = nth r l d :: skipn (S r) l.
Proof. induction r; intros [|a l] H; simpl in *; try lia; auto. apply IHr. lia. Qed.

(** Wires with the values of ranks first, first + 1, ... carry a part of the ascending inputs. *)
Lemma ranks_are_a_part {A} d (l : list A) (output : nat -> A) wires : forall first,
  first + length wires <= length l ->
  (forall w r, In (w, r) (combine wires (seq first (length wires))) -> output w = nth r l d) ->
  map output wires = firstn (length wires) (skipn first l).
Proof.
  induction wires as [|w wires IH]; intros first Hl H; simpl in *; auto.
  rewrite (skipn_nth d) by lia. f_equal. { apply H. now left. }
  apply IH; [lia|]. intros. apply H. now right.
Qed.

(** * The 0-1 principle *)

(** 0 is false, and 1 is true. *)
Notation run01 := (run implb).
Notation ascend01 := (ascend implb).

Fixpoint zeros (l : list bool) : nat :=
  match l with
  | [] => 0
  | b :: l => (if b then 0 else 1) + zeros l
  end.

Lemma zeros_app l l' : zeros (l ++ l') = zeros l + zeros l'.
Proof. induction l; simpl; lia. Qed.

Lemma zeros_at_most l : zeros l <= length l.
Proof. induction l as [|[] l IH]; simpl; lia. Qed.

Lemma zeros_permutation l l' : Permutation l l' -> zeros l = zeros l'.
Proof. induction 1; simpl; lia. Qed.

Lemma zeros_of_ones l : Forall (fun b => b = true) l -> zeros l = 0.
Proof. induction 1 as [|b l ->]; auto. Qed.

Lemma zeros_of_zeros l : Forall (fun b => b = false) l -> zeros l = length l.
Proof. induction 1 as [|b l ->]; simpl; auto. Qed.

(** Statement (Z) for one wire w of rank r, and a set of inputs: w carries 0 if and only if there are more than r
    zeros among the inputs. *)
Definition right01 (n : nat) (network : list comparator) (w r : nat) (x : nat -> bool) : Prop :=
  run01 network x w = (zeros (map x (seq 0 n)) <=? r).

Section Zero_one.
  Variables (A : Type) (leb : A -> A -> bool) (order : total_order leb).

  Definition monotone (f : A -> bool) : Prop := forall a b, leb a b = true -> implb (f a) (f b) = true.

  (** f commutes with the network. *)
  Lemma run_commutes f net : monotone f -> forall x w, f (run leb net x w) = run01 net (fun v => f (x v)) w.
  Proof.
    intro H. destruct order as (total & _ & _). induction net as [|[lo hi] net IH]; simpl; auto. intros x w.
    rewrite IH. apply run_ext. intro v. simpl.
    pose proof (H (x lo) (x hi)) as H1. pose proof (H (x hi) (x lo)) as H2. pose proof (total (x lo) (x hi)) as H3.
    destruct (leb (x lo) (x hi)) eqn:E.
    - rewrite H1 by auto. now destruct (v =? lo), (v =? hi).
    - destruct H3 as [|H3]; [discriminate|]. specialize (H2 H3).
      destruct (v =? lo), (v =? hi), (f (x lo)), (f (x hi)); simpl in *; congruence.
  Qed.

  Lemma ascend_map f l : monotone f -> ascend leb l -> ascend01 (map f l).
  Proof.
    intro H. induction 1 as [|a l _ IH Ha]; simpl; constructor; auto.
    apply Forall_map. apply Forall_impl with (2 := Ha). intro. apply H.
  Qed.

  Definition above (u a : A) : bool := negb (leb a u).

  Lemma above_monotone u : monotone (above u).
  Proof.
    intros a b H. unfold above. destruct order as (_ & trans & _). pose proof (trans a b u H).
    destruct (leb a u), (leb b u); auto.
  Qed.

  Lemma number_of_zeros f d l : monotone f -> ascend leb l ->
    forall r, r < length l -> f (nth r l d) = (zeros (map f l) <=? r).
  Proof.
    intro H. induction 1 as [|a l _ IH Ha]; simpl; [lia|]. intros r Hr.
    destruct (f a) eqn:E.
    - assert (ones : Forall (fun b => f b = true) l).
      { apply Forall_impl with (2 := Ha). intros b Hb. specialize (H a b Hb). now rewrite E in H. }
      rewrite zeros_of_ones by now apply Forall_map. destruct r; simpl; auto.
      rewrite Forall_forall in ones. apply ones, nth_In. lia.
    - destruct r; simpl; auto. apply IH. lia.
  Qed.

  (** Theorem Z of Knuth, section 5.3.4. *)
  Theorem zero_one_principle n net w r (admissible : (nat -> bool) -> Prop) x l d :
    r < n -> (forall y, admissible y -> right01 n net w r y) -> (forall u, admissible (fun v => above u (x v))) ->
    Permutation (map x (seq 0 n)) l -> ascend leb l -> run leb net x w = nth r l d.
  Proof.
    intros Hr Z Hx Hp Hl.
    assert (same : forall u, above u (run leb net x w) = above u (nth r l d)).
    { intro u. rewrite run_commutes by apply above_monotone. rewrite (Z _ (Hx u)).
      rewrite (number_of_zeros (above u) d l)
        by (auto using above_monotone; rewrite <- Hp, map_length, seq_length; auto).
      rewrite <- (map_map x (above u)). f_equal. apply zeros_permutation. now apply Permutation_map. }
    destruct order as (total & _ & antisymmetric).
    assert (reflexive : forall a, leb a a = true) by (intro a; now destruct (total a a)).
    apply antisymmetric.
    - specialize (same (nth r l d)). unfold above in same. rewrite reflexive in same. now destruct (leb _ _).
    - specialize (same (run leb net x w)). unfold above in same. rewrite reflexive in same. now destruct (leb _ _).
  Qed.
End Zero_one.

(** * Inputs of r and of r + 1 zeros are enough *)

Lemma run_monotone net : forall x y : nat -> bool,
  (forall w, implb (x w) (y w) = true) -> forall w, implb (run01 net x w) (run01 net y w) = true.
Proof.
  induction net as [|[lo hi] net IH]; simpl; auto. intros x y H w. apply IH. intro v. simpl.
  pose proof (H lo). pose proof (H hi). pose proof (H v).
  destruct (v =? lo), (v =? hi), (x lo), (x hi), (y lo), (y hi); simpl in *; congruence.
Qed.

Definition mem (w : nat) (l : list nat) : bool := existsb (Nat.eqb w) l.

Lemma mem_In w l : mem w l = true <-> In w l.
Proof.
  unfold mem. rewrite existsb_exists. split; [|exists w; now rewrite Nat.eqb_refl].
  intros (v & Hv & E). apply Nat.eqb_eq in E. now subst.
Qed.

Lemma mem_false w l : ~ In w l -> mem w l = false.
Proof. rewrite <- mem_In. now destruct (mem w l). Qed.

(** The wires in some order: the first k carry 0, the others 1. *)
Definition cutoff (order : list nat) (k : nat) : nat -> bool := fun w => negb (mem w (firstn k order)).

Lemma cutoff_next a order k w : In w order -> NoDup (a :: order) -> cutoff (a :: order) (S k) w = cutoff order k w.
Proof.
  intros Hw H. inversion_clear H. unfold cutoff. simpl. destruct (w =? a) eqn:E; auto.
  apply Nat.eqb_eq in E. now subst.
Qed.

Lemma cutoff_ascends order : NoDup order -> forall k, ascend01 (map (cutoff order k) order).
Proof.
  induction 1 as [|a order Ha H IH]; intros k; [constructor|]. destruct k.
  - assert (ones : forall l : list nat, ascend01 (map (fun _ => true) l)).
    { induction l; constructor; auto. now apply Forall_map, Forall_forall. }
    apply (ones (a :: order)).
  - simpl. constructor.
    + rewrite map_ext_in with (g := cutoff order k); [apply IH|].
      intros. apply cutoff_next; auto. now constructor.
    + unfold cutoff at 1. simpl. rewrite Nat.eqb_refl. now apply Forall_forall.
Qed.

Section Combination.
  (** h is the minimum or the maximum. *)
  Variables (h : bool -> bool -> bool) (x : nat -> bool).
  Hypothesis h_monotone :
    forall a b c d, implb a b = true -> implb c d = true -> implb (h a c) (h b d) = true.

  Lemma ascend_combination y l :
    ascend01 (map x l) -> ascend01 (map y l) -> ascend01 (map (fun w => h (x w) (y w)) l).
  Proof.
    induction l as [|a l IH]; intros Hx Hy; [constructor|].
    inversion_clear Hx. inversion_clear Hy. constructor; [now apply IH|].
    apply Forall_map. rewrite Forall_map in H0, H2. rewrite Forall_forall in *. auto.
  Qed.

  Lemma one_more_zero order : NoDup order -> forall k,
    zeros (map (fun w => h (x w) (cutoff order (S k) w)) order)
    <= zeros (map (fun w => h (x w) (cutoff order k w)) order) + 1.
  Proof.
    induction 1 as [|a order Ha H IH]; intro k; [simpl; lia|].
    assert (head : forall k, cutoff (a :: order) (S k) a = false).
    { intro. unfold cutoff. simpl. now rewrite Nat.eqb_refl. }
    assert (tail : forall k, map (fun w => h (x w) (cutoff (a :: order) (S k) w)) order
                             = map (fun w => h (x w) (cutoff order k w)) order).
    { intro. apply map_ext_in. intros. rewrite cutoff_next; auto. now constructor. }
    cbn [map zeros]. rewrite head, tail. destruct k.
    - change (cutoff (a :: order) 0) with (cutoff order 0). destruct (h _ _), (h _ _); lia.
    - rewrite head, tail. specialize (IH k). lia.
  Qed.
End Combination.

Lemma all_values_between f : (forall k, f (S k) <= f k + 1) -> forall m t, f 0 <= t <= f m -> exists k, f k = t.
Proof.
  intros H m. induction m; intros t Ht. { exists 0. lia. }
  specialize (H m). destruct (Nat.eq_dec t (f (S m))) as [->|]; [now exists (S m)|]. apply IHm. lia.
Qed.

Lemma ascend_part l l' l'' : ascend01 (l ++ l' ++ l'') -> ascend01 l'.
Proof.
  induction l; intro H; [|inversion_clear H; auto].
  induction l' as [|b l' IH]; [constructor|]. inversion_clear H as [|? ? Hs Hb].
  constructor; [now apply IH|]. now apply Forall_app in Hb.
Qed.

Section Two_numbers_of_zeros.
  Variables (n : nat) (groups : list (list nat)) (partition : Permutation (concat groups) (seq 0 n)).

  Definition admissible01 (x : nat -> bool) : Prop := forall g, In g groups -> ascend01 (map x g).

  Lemma groups_distinct : NoDup (concat groups).
  Proof. eapply Permutation_NoDup; [symmetry; apply partition|apply seq_NoDup]. Qed.

  Lemma zeros_of_groups x : zeros (map x (concat groups)) = zeros (map x (seq 0 n)).
  Proof. now apply zeros_permutation, Permutation_map. Qed.

  Lemma cutoff_admissible k : admissible01 (cutoff (concat groups) k).
  Proof.
    intros g Hg. destruct (in_split _ _ Hg) as (a & b & E).
    pose proof (cutoff_ascends _ groups_distinct k) as H. revert H.
    generalize (cutoff (concat groups) k). intros x H. rewrite E, concat_app in H. simpl in H.
    rewrite !map_app in H. now apply ascend_part in H.
  Qed.

  (** The minimum or maximum of x and a cutoff takes each number of zeros in between. *)
  Lemma between h x m t :
    (forall a b c d, implb a b = true -> implb c d = true -> implb (h a c) (h b d) = true) ->
    admissible01 x ->
    zeros (map (fun w => h (x w) true) (seq 0 n)) <= t <= zeros (map (fun w => h (x w) false) (seq 0 n)) ->
    m = n -> exists y, admissible01 (fun w => h (x w) (y w)) /\ zeros (map (fun w => h (x w) (y w)) (seq 0 n)) = t.
  Proof.
    intros Hh Hx Ht ->. set (order := concat groups).
    destruct (all_values_between (fun k => zeros (map (fun w => h (x w) (cutoff order k w)) order)))
      with (m := n) (t := t) as (k & Hk).
    - intro k. apply one_more_zero; auto. apply groups_distinct.
    - unfold order. rewrite !zeros_of_groups. fold order.
      rewrite (map_ext_in (fun w => h (x w) (cutoff order n w)) (fun w => h (x w) false)); auto.
      intros w Hw. unfold cutoff. rewrite firstn_all2.
      + rewrite (proj2 (mem_In w order)); auto. now apply Permutation_in with (1 := Permutation_sym partition).
      + unfold order. now rewrite (Permutation_length partition), seq_length.
    - exists (cutoff order k). split; [|now rewrite <- zeros_of_groups].
      intros g Hg. apply ascend_combination; auto. now apply cutoff_admissible.
  Qed.

  Theorem two_numbers_of_zeros net w r : r < n ->
    (forall x, admissible01 x -> let t := zeros (map x (seq 0 n)) in t = r \/ t = S r -> right01 n net w r x) ->
    forall x, admissible01 x -> right01 n net w r x.
  Proof.
    intros Hr H x Hx. unfold right01. set (t := zeros (map x (seq 0 n))).
    assert (all0 : zeros (map (fun _ => false) (seq 0 n)) = n).
    { rewrite zeros_of_zeros, map_length; [apply seq_length|]. apply Forall_map, Forall_forall; auto. }
    assert (all1 : zeros (map (fun _ => true) (seq 0 n)) = 0) by (apply zeros_of_ones, Forall_map, Forall_forall; auto).
    destruct (Nat.leb_spec t r).
    - destruct (between andb x n r) as (y & Hy & Ey); auto.
      + now intros [] [] [] [].
      + rewrite (map_ext _ x) by (intro; apply andb_true_r).
        rewrite (map_ext (fun w => x w && false) (fun _ => false)) by (intro; apply andb_false_r). fold t. lia.
      + specialize (H _ Hy (or_introl Ey)). red in H. rewrite Ey, Nat.leb_refl in H.
        pose proof (run_monotone net (fun w => x w && y w) x) as M.
        specialize (M ltac:(intro v; cbv beta; now destruct (x v), (y v)) w).
        rewrite H in M. now destruct (run01 net x w).
    - destruct (between orb x n (S r)) as (y & Hy & Ey); auto.
      + now intros [] [] [] [].
      + rewrite (map_ext (fun w => x w || false) x) by (intro; apply orb_false_r).
        rewrite (map_ext _ (fun _ => true)) by (intro; apply orb_true_r). fold t. lia.
      + specialize (H _ Hy (or_intror Ey)). red in H. rewrite Ey in H.
        rewrite (proj2 (Nat.leb_gt (S r) r)) in H by lia.
        pose proof (run_monotone net x (fun w => x w || y w)) as M.
        specialize (M ltac:(intro v; cbv beta; now destruct (x v), (y v)) w).
        rewrite H in M. now destruct (run01 net x w).
  Qed.
End Two_numbers_of_zeros.
