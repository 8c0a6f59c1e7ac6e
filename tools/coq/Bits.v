(** What the methods of proof share: sets of wires, and comparators that have numbers.

    Nothing here or in the methods has to be read by those who trust Coq: [Certificate.checked] does not mention it. In
    each section the functions that are extracted come first, and the proofs follow. *)

From Coq Require Import Arith NArith List Bool.
Import ListNotations.
Require Import Claims.
Local Open Scope nat_scope.

(** * Sets, as the bits of a number *)

(** Whether w is in the set *)
Definition bit (w : nat) (mask : N) : bool := N.testbit_nat mask w.

(** The set of w alone *)
Fixpoint single (w : nat) : positive :=
  match w with
  | O => xH
  | S w => xO (single w)
  end.

(** The set of the members of a list *)
Definition mask (l : list nat) : N := fold_right (fun w m => N.lor (Npos (single w)) m) 0%N l.

(** No number stands twice in the list. *)
Fixpoint distinct (l : list nat) : bool :=
  match l with
  | [] => true
  | w :: l => negb (mem w l) && distinct l
  end.

Lemma bit_single w : forall v, bit v (Npos (single w)) = (v =? w).
Proof. induction w; intros [|v]; simpl; auto. apply IHw. Qed.

Lemma bit_lor v a b : bit v (N.lor a b) = bit v a || bit v b.
Proof. apply Nor_semantics. Qed.

Lemma bit_mask v l : bit v (mask l) = mem v l.
Proof.
  induction l as [|w l IH]; auto.
  change (bit v (N.lor (Npos (single w)) (mask l)) = (v =? w) || mem v l). now rewrite bit_lor, bit_single, IH.
Qed.

Lemma bit_land v a b : bit v (N.land a b) = bit v a && bit v b.
Proof. apply Nand_semantics. Qed.

Lemma bit_ldiff v a b : bit v (N.ldiff a b) = bit v a && negb (bit v b).
Proof. apply Ndiff_semantics. Qed.

Lemma distinct_NoDup l : distinct l = true -> NoDup l.
Proof.
  induction l as [|w l IH]; simpl; constructor; apply andb_true_iff in H as (H1 & H2); auto.
  intro H. apply mem_In in H. now rewrite H in H1.
Qed.

(** * Comparators on bits *)

(** The values of the wires, zeros and ones, behind a comparator; both is the mask of its two wires. *)
Definition exchange_bits (c : comparator * N) (bits : N) : N :=
  let '((lo, hi), both) := c in
  if bit lo bits && negb (bit hi bits) then N.lxor bits both else bits.

Definition with_mask (c : comparator) : comparator * N := (c, N.lxor (Npos (single (fst c))) (Npos (single (snd c)))).

Lemma exchange_bits_is_exchange c bits w :
  bit w (exchange_bits (with_mask c) bits) = exchange implb c (fun v => bit v bits) w.
Proof.
  destruct c as [lo hi]. unfold with_mask, exchange_bits. cbn [fst snd exchange].
  destruct (bit lo bits) eqn:Elo, (bit hi bits) eqn:Ehi; cbn [andb negb implb].
  2: { unfold bit at 1. rewrite !Nxor_semantics. fold (bit w bits).
       change (xorb (bit w bits) (xorb (bit w (Npos (single lo))) (bit w (Npos (single hi)))) =
               (if w =? lo then false else if w =? hi then true else bit w bits)).
       rewrite !bit_single. destruct (Nat.eqb_spec w lo) as [E1|], (Nat.eqb_spec w hi) as [E2|];
         try (rewrite E1 in *); try (rewrite E2 in *); rewrite ?Elo, ?Ehi; try congruence; simpl; auto.
       apply xorb_false_r. }
  all: destruct (Nat.eqb_spec w lo) as [E1|]; [now rewrite E1|]; destruct (Nat.eqb_spec w hi) as [E2|]; auto.
  all: now rewrite E2.
Qed.

Lemma exchanges_are_run net : forall bits w,
  bit w (fold_left (fun bits c => exchange_bits c bits) (map with_mask net) bits)
  = run01 net (fun v => bit v bits) w.
Proof.
  induction net as [|c net IH]; intros bits w; simpl; auto. rewrite IH. apply run_ext.
  intro v. apply exchange_bits_is_exchange.
Qed.

(** Comparators within a set of wires depend on the values of this set. *)
Lemma run_within net (set : nat -> Prop) : (forall c, In c net -> set (fst c) /\ set (snd c)) ->
  forall x y : nat -> bool, (forall w, set w -> x w = y w) -> forall w, set w -> run01 net x w = run01 net y w.
Proof.
  induction net as [|c net IH]; intros Hnet x y H w Hw; [apply H, Hw|]. rewrite !run_cons.
  apply IH; auto. { intros; apply Hnet; now right. }
  intros v Hv. destruct (Hnet c) as (H1 & H2); [now left|]. apply exchange_local; auto.
Qed.

(** * Comparators with numbers *)

(** Comparators with their numbers *)
Definition numbered : Type := nat * comparator.

(** The comparators that wires with a rank depend on, and the wires that are wanted in front of them. *)
Fixpoint keep (wanted : N) (network : list numbered) : list numbered * N :=
  match network with
  | [] => ([], wanted)
  | (i, (lo, hi)) :: network =>
      let (kept, wanted) := keep wanted network in
      if bit lo wanted || bit hi wanted then ((i, (lo, hi)) :: kept, N.lor wanted (mask [lo; hi])) else (kept, wanted)
  end.

(** The wires of comparator number i, if it is the next one of both. *)
Definition next_comparator (i : nat) (todo : list numbered) : option comparator :=
  match find (fun c => fst c =? i) todo with
  | Some (_, (lo, hi)) =>
      match find (fun c => mem lo [fst (snd c); snd (snd c)] || mem hi [fst (snd c); snd (snd c)]) todo with
      | Some (j, _) => if j =? i then Some (lo, hi) else None
      | None => None
      end
  | None => None
  end.

(** Wires that are wanted carry the same values behind the kept comparators as behind all. *)
Lemma keep_correct network : forall wanted kept wanted', keep wanted network = (kept, wanted') ->
  (forall w, bit w wanted = true -> bit w wanted' = true)
  /\ forall x y, (forall w, bit w wanted' = true -> x w = y w) ->
     forall w, bit w wanted = true -> run01 (map snd kept) x w = run01 (map snd network) y w.
Proof.
  induction network as [|[i [lo hi]] network IH]; intros wanted kept wanted'; cbn [keep].
  { intro H. injection H as <- <-. auto. }
  destruct (keep wanted network) as [kept1 wanted1] eqn:K. destruct (IH _ _ _ K) as (Hsub & Hrun).
  destruct (bit lo wanted1 || bit hi wanted1) eqn:E; intro H; injection H as <- <-.
  - assert (wanted_then : forall w, bit w (N.lor wanted1 (mask [lo; hi])) = bit w wanted1 || mem w [lo; hi]).
    { intro. now rewrite bit_lor, bit_mask. }
    split.
    + intros w Hw. now rewrite wanted_then, Hsub.
    + intros x y Hxy w Hw. cbn [map snd]. rewrite !run_cons. apply Hrun; auto. intros v Hv.
      apply exchange_local; apply Hxy; rewrite wanted_then; simpl; rewrite ?Hv, ?Nat.eqb_refl, ?orb_true_r; auto.
  - apply orb_false_iff in E as (Elo & Ehi). split; auto.
    intros x y Hxy w Hw. cbn [map snd]. rewrite run_cons. apply Hrun; auto. intros v Hv.
    rewrite exchange_other; auto; simpl; congruence.
Qed.

Lemma numbers_do_not_matter {A} (l : list A) : forall i, map snd (combine (seq i (length l)) l) = l.
Proof. induction l; intro i; simpl; auto. now f_equal. Qed.

Lemma kept_outputs (ranked : list (nat * nat)) network x w r : In (w, r) ranked ->
  run01 (map snd (fst (keep (mask (map fst ranked)) (combine (seq 0 (length network)) network)))) x w
  = run01 network x w.
Proof.
  intro Hr. destruct (keep _ _) as [kept wanted] eqn:K. destruct (keep_correct _ _ _ _ K) as (_ & Hrun). simpl.
  rewrite Hrun with (y := x); auto. { now rewrite numbers_do_not_matter. }
  rewrite bit_mask, mem_In. apply in_map_iff. now exists (w, r).
Qed.

(** The ones of an ascending list are its last wires. *)
Lemma presorted_wires g x : NoDup g -> ascend01 (map x g) ->
  forall w, mem w (skipn (zeros (map x g)) g) = mem w g && x w.
Proof.
  induction g as [|a g IH]; intros Hd Ha w; [reflexivity|]. inversion_clear Hd as [|? ? Hout Hd'].
  inversion_clear Ha as [|? ? Ha' Hmin]. specialize (IH Hd' Ha' w). cbn [map zeros]. destruct (x a) eqn:E.
  - assert (ones : Forall (fun v => x v = true) (a :: g)) by (constructor; auto; now apply Forall_map in Hmin).
    rewrite zeros_of_ones by (apply Forall_map; now inversion ones). simpl skipn.
    destruct (mem w (a :: g)) eqn:M; auto. apply mem_In in M. rewrite Forall_forall in ones. now rewrite ones.
  - simpl skipn. rewrite IH. unfold mem at 2. cbn [existsb]. fold (mem w g).
    destruct (Nat.eqb_spec w a) as [->|]; auto. now rewrite (mem_false a g Hout), E.
Qed.
