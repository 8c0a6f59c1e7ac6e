(** Proofs by patterns, and by exhaustion. *)

From Coq Require Import Arith NArith List Bool Permutation Lia MSetPositive.
Import ListNotations.
Require Import Claims Bits.
Local Open Scope nat_scope.

(** ** Patterns and components *)

(** The values of the wires of a component, 0 on all other wires; and the number of zeros. *)
Definition pattern : Type := N * nat.

(** Patterns as positive numbers, for the sets of them. *)
Fixpoint encode (bits : N) (zeros : nat) : positive :=
  match zeros with
  | O => match bits with N0 => xH | Npos p => xI p end
  | S zeros => xO (encode bits zeros)
  end.

Fixpoint decode (code : positive) : pattern :=
  match code with
  | xH => (N0, 0)
  | xI p => (Npos p, 0)
  | xO code => let (bits, zeros) := decode code in (bits, S zeros)
  end.

(** A component, as the page says *)
Record component : Type := {
  held : N;                    (** the mask of its wires *)
  inputs : list nat;           (** its wires in the beginning *)
  patterns : list pattern;
}.

(** The component of no wires *)
Definition nothing : component := {| held := 0; inputs := []; patterns := [(0%N, 0)] |}.

(** A group is a [presorted] line, or a wire that is in none. The first z wires of a pattern of z zeros carry 0. *)
Definition component_of_group (group : list nat) : component :=
  {| held := mask group; inputs := group;
     patterns := map (fun z => (mask (skipn z group), z)) (seq 0 (S (length group))) |}.

(** Divide comparators into those to take and those to leave: a comparator can be taken if both its wires are free.
    The wires of a comparator that is left are no longer free. *)
Fixpoint take (free : N) (todo : list numbered) : list comparator * list numbered :=
  match todo with
  | [] => ([], [])
  | (i, (lo, hi)) :: todo =>
      if bit lo free && bit hi free
      then let (taken, left) := take free todo in ((lo, hi) :: taken, left)
      else let (taken, left) := take (N.ldiff free (mask [lo; hi])) todo in (taken, (i, (lo, hi)) :: left)
  end.

(** The values of wire w in many patterns: a column. Comparators take all patterns at once. *)
Definition column (w : nat) (ps : list pattern) : N :=
  fold_right (fun p c => if bit w (fst p) then N.succ_double c else N.double c) 0%N ps.

Fixpoint put (w : nat) (c : N) (columns : list N) : list N :=
  match w, columns with
  | O, [] => [c]
  | O, _ :: columns => c :: columns
  | S w, [] => 0%N :: put w c []
  | S w, d :: columns => d :: put w c columns
  end.

Definition exchange_columns (columns : list N) (c : comparator) : list N :=
  let (lo, hi) := c in
  let a := nth lo columns 0%N in
  let b := nth hi columns 0%N in
  put lo (N.land a b) (put hi (N.lor a b) columns).

(** The values of all wires in the first pattern *)
Definition first_row (columns : list N) : N :=
  fold_right (fun c row => if N.odd c then N.succ_double row else N.double row) 0%N columns.

(** The patterns whose columns these are go into the set, if their zeros are possible. They come from one pattern of z
    zeros and each of the qs, and have values on the wires that are held. *)
Fixpoint add_rows (held zeros_possible : N) (z : nat) (qs : list pattern) (columns : list N) (all : PositiveSet.t)
    : PositiveSet.t :=
  match qs with
  | [] => all
  | q :: qs =>
      let all :=
        if bit (z + snd q) zeros_possible
        then PositiveSet.add (encode (N.land held (first_row columns)) (z + snd q)) all
        else all in
      add_rows held zeros_possible z qs (map N.div2 columns) all
  end.

(** The patterns of all pairs of patterns of n wires behind comparators, each once *)
Definition all_pairs (n : nat) (taken : list comparator) (held zeros_possible : N) (ps qs : list pattern)
    : list pattern :=
  let ones := column 0 (map (fun _ => (1%N, 0)) qs) in
  let columns := map (fun w => (w, column w qs)) (seq 0 n) in
  let add_pairs p :=
    let columns := map (fun wc => if bit (fst wc) (fst p) then ones else snd wc) columns in
    add_rows held zeros_possible (snd p) qs (fold_left exchange_columns taken columns) in
  map decode (PositiveSet.elements (fold_left (fun all p => add_pairs p all) ps PositiveSet.empty)).

Section Steps.
  (** n wires; wires with their ranks *)
  Variables (n : nat) (ranked : list (nat * nat)).

  (** Part of an input of r or r + 1 zeros, for a rank r, can be z zeros of m inputs. *)
  Definition possible (m z : nat) : bool :=
    let t_possible t := (z <=? t) && (t <=? z + (n - m)) in
    existsb (fun wr => t_possible (snd wr) || t_possible (S (snd wr))) ranked.

  (** Rule 3: the numbers of zeros that patterns of m inputs may have *)
  Definition zeros_possible (m : nat) : N := mask (filter (possible m) (seq 0 (S m))).

  (** Rule 2: the wires that have a rank, or a next comparator *)
  Definition needed (left : list numbered) : N :=
    N.lor (mask (map fst ranked)) (mask (flat_map (fun c => [fst (snd c); snd (snd c)]) left)).

  (** Join two components and settle the new one: the new one, and the comparators that are left. *)
  Definition join_to (a b : component) (todo : list numbered) : component * list numbered :=
    let wires := N.lor (held a) (held b) in
    let (taken, left) := take wires todo in
    let held := N.land wires (needed left) in
    let inputs := inputs a ++ inputs b in
    ({| held := held; inputs := inputs;
        patterns := all_pairs n taken held (zeros_possible (length inputs)) (patterns a) (patterns b) |},
     left).

  (** The same: columns should be long, so the component that has more patterns comes second. *)
  Definition join (a b : component) (todo : list numbered) : component * list numbered :=
    if length (patterns a) <=? length (patterns b) then join_to a b todo else join_to b a todo.

  (** Rule 4, for one wire and rank and one pattern *)
  Definition right (w r m : nat) (p : pattern) : bool :=
    if bit w (fst p) then snd p + (n - m) <=? r else r <? snd p.

  (** All comparators have been taken, and each wire that has a rank is right in each pattern of its component. *)
  Definition finished (components : list component) (todo : list numbered) : bool :=
    match todo with [] => true | _ => false end
    && forallb (fun '(w, r) =>
         existsb (fun k => bit w (held k) && forallb (right w r (length (inputs k))) (patterns k)) components) ranked.

  (** The component of a wire, and the others *)
  Fixpoint find_component (w : nat) (components : list component) : option (component * list component) :=
    match components with
    | [] => None
    | k :: rest =>
        if bit w (held k) then Some (k, rest)
        else match find_component w rest with
             | Some (found, others) => Some (found, k :: others)
             | None => None
             end
    end.

  (** Follow the steps: each join has to leave COUNT patterns. *)
  Fixpoint by_patterns (steps : list (nat * N)) (components : list component) (todo : list numbered) : bool :=
    match steps with
    | [] => finished components todo
    | (i, count) :: steps =>
        match next_comparator i todo with
        | None => false
        | Some (lo, hi) =>
            match find_component lo components with
            | None => false
            | Some (a, rest) =>
                match find_component hi rest with
                | None => false                (* no such wire, or it is in component a *)
                | Some (b, rest) =>
                    let (k, todo) := join a b todo in
                    (N.of_nat (length (patterns k)) =? count)%N && by_patterns steps (k :: rest) todo
                end
            end
        end
    end.

  (** Settle the components of the beginning: to join one with nothing settles it. *)
  Fixpoint begin (settled unsettled : list component) (todo : list numbered) : list component * list numbered :=
    match unsettled with
    | [] => (settled, todo)
    | k :: unsettled => let (k, todo) := join nothing k todo in begin (k :: settled) unsettled todo
    end.

  (** Exhaustion joins the components of the first comparator, as long as there is one. The depth is at least the number
      of components. *)
  Fixpoint by_exhaustion (depth : nat) (components : list component) (todo : list numbered) : bool :=
    match depth, todo with
    | S depth, (_, (lo, hi)) :: _ =>
        match find_component lo components with
        | None => false
        | Some (a, rest) =>
            match find_component hi rest with
            | None => false
            | Some (b, rest) => let (k, todo) := join a b todo in by_exhaustion depth (k :: rest) todo
            end
        end
    | _, _ => finished components todo
    end.
End Steps.

(** ** Why patterns are sound *)

Lemma decode_encode bits z : decode (encode bits z) = (bits, z).
Proof. induction z as [|z IH]; simpl; [now destruct bits|]. now rewrite IH. Qed.

(** Comparators that are taken have free wires, and acting before those that are left changes nothing. *)
Lemma take_correct todo : forall free taken left, take free todo = (taken, left) ->
  (forall c, In c taken -> bit (fst c) free = true /\ bit (snd c) free = true)
  /\ forall s w, run01 (map snd todo) s w = run01 (map snd left) (run01 taken s) w.
Proof.
  induction todo as [|[i [lo hi]] todo IH]; intros free taken left; cbn [take].
  { intro H. injection H as <- <-. split; [easy|auto]. }
  destruct (bit lo free && bit hi free) eqn:E.
  - destruct (take free todo) as [taken' left'] eqn:T. intro H. injection H as <- <-.
    destruct (IH _ _ _ T) as (Hfree & Hrun). split.
    + intros c [<-|Hc]; auto. now apply andb_true_iff.
    + intros s w. apply Hrun.
  - destruct (take (N.ldiff free (mask [lo; hi])) todo) as [taken' left'] eqn:T. intro H. injection H as <- <-.
    destruct (IH _ _ _ T) as (Hfree & Hrun). split.
    + intros c Hc. destruct (Hfree c Hc) as (H1 & H2). rewrite bit_ldiff in H1, H2.
      now apply andb_true_iff in H1 as (-> & _), H2 as (-> & _).
    + intros s w. cbn [map snd]. rewrite !run_cons, Hrun. apply run_ext. intro v. symmetry. apply exchange_run_commutes.
      intros d Hd. destruct (Hfree d Hd) as (H1 & H2). rewrite bit_ldiff, bit_mask in H1, H2.
      apply andb_true_iff in H1 as (_ & H1), H2 as (_ & H2). apply negb_true_iff in H1, H2.
      assert (out : forall v, mem v [lo; hi] = false -> lo <> v /\ hi <> v).
      { intros u Hu. split; intros <-; simpl in Hu; rewrite Nat.eqb_refl, ?orb_true_r in Hu; discriminate. }
      apply out in H1, H2. unfold disjoint; simpl; tauto.
Qed.

(** What a step of a fold has put in stays. *)
Lemma fold_reaches {A B} (P : A -> Prop) (f : A -> B -> A) l b :
  In b l -> (forall a b, P a -> P (f a b)) -> (forall a, P (f a b)) -> forall a, P (fold_left f l a).
Proof.
  intros Hb keeps reaches.
  assert (stays : forall l a, P a -> P (fold_left f l a)) by (induction l0; simpl; auto).
  induction l as [|c l IH]; [easy|]. intro a. simpl. destruct Hb as [->|Hb]; auto.
Qed.

Lemma bit_double v m : bit (S v) (N.double m) = bit v m /\ bit 0 (N.double m) = false.
Proof. now destruct m. Qed.

Lemma bit_succ_double v m : bit (S v) (N.succ_double m) = bit v m /\ bit 0 (N.succ_double m) = true.
Proof. now destruct m. Qed.

Lemma bit_column w ps : forall j, bit j (column w ps) = bit w (fst (nth j ps (0%N, 0))).
Proof.
  induction ps as [|p ps IH]; intros [|j]; simpl; auto; destruct (bit w (fst p)) eqn:E;
    rewrite ?(proj2 (bit_double 0 _)), ?(proj2 (bit_succ_double 0 _)), ?(proj1 (bit_double _ _)),
      ?(proj1 (bit_succ_double _ _)); auto.
Qed.

Lemma nth_put w c : forall columns v, nth v (put w c columns) 0%N = if v =? w then c else nth v columns 0%N.
Proof.
  induction w as [|w IH]; intros [|d columns] [|v]; simpl; auto; try now destruct v.
  rewrite IH. now destruct v.
Qed.

Lemma columns_run j net : forall columns w,
  bit j (nth w (fold_left exchange_columns net columns) 0%N)
  = run01 net (fun v => bit j (nth v columns 0%N)) w.
Proof.
  induction net as [|[lo hi] net IH]; intros columns w; [reflexivity|]. cbn [fold_left]. rewrite IH, run_cons.
  apply run_ext. intro v. unfold exchange_columns. rewrite !nth_put. unfold exchange.
  set (a := nth lo columns 0%N). set (b := nth hi columns 0%N).
  destruct (v =? lo); [rewrite bit_land|destruct (v =? hi); [rewrite bit_lor|]];
    now destruct (bit j a), (bit j b).
Qed.

Lemma bit_first_row columns : forall w, bit w (first_row columns) = bit 0 (nth w columns 0%N).
Proof.
  induction columns as [|c columns IH]; [now intros [|w]|]. intro w. cbn [first_row fold_right].
  fold (first_row columns). assert (Hc : N.odd c = bit 0 c) by now destruct c as [|[]].
  destruct w; cbn [nth]; rewrite Hc.
  - destruct (bit 0 c); [apply (bit_succ_double 0)|apply (bit_double 0)].
  - rewrite <- IH. destruct (bit 0 c); [apply bit_succ_double|apply bit_double].
Qed.

Lemma bit_div2 j c : bit j (N.div2 c) = bit (S j) c.
Proof. now destruct c as [|[]]. Qed.

Lemma add_rows_keeps held possible z code qs : forall columns all,
  PositiveSet.In code all -> PositiveSet.In code (add_rows held possible z qs columns all).
Proof.
  induction qs as [|q qs IH]; simpl; auto. intros columns all H. apply IH.
  destruct (bit _ possible); auto. apply PositiveSet.add_spec. auto.
Qed.

Lemma add_rows_reaches held possible z qs q : bit (z + snd q) possible = true -> forall j columns,
  j < length qs -> nth j qs (0%N, 0) = q ->
  exists bits, (forall w, bit w bits = bit w held && bit j (nth w columns 0%N))
  /\ forall all, PositiveSet.In (encode bits (z + snd q)) (add_rows held possible z qs columns all).
Proof.
  intro Hz. induction qs as [|q' qs IH]; simpl; [lia|]. intros [|j] columns Hj E.
  - subst q'. exists (N.land held (first_row columns)). split.
    + intro w. now rewrite bit_land, bit_first_row.
    + intro all. rewrite Hz. apply add_rows_keeps, PositiveSet.add_spec. auto.
  - destruct (IH j (map N.div2 columns)) as (bits & Hbits & Hall); [lia|auto|]. exists bits. split; auto.
    intro w. rewrite Hbits, <- bit_div2. f_equal. f_equal. exact (map_nth N.div2 columns 0%N w).
Qed.

(** No pair is lost. *)
Lemma all_pairs_has n taken held possible ps qs p q : In p ps -> In q qs ->
  bit (snd p + snd q) possible = true ->
  (forall w, bit w (fst p) || bit w (fst q) = true -> w < n) ->
  exists bits, In (bits, snd p + snd q) (all_pairs n taken held possible ps qs)
  /\ forall w, bit w bits = bit w held && run01 taken (fun v => bit v (fst p) || bit v (fst q)) w.
Proof.
  intros Hp Hq Hz Hn. destruct (In_nth qs q (0%N, 0) Hq) as (j & Hj & E). unfold all_pairs.
  set (ones := column 0 _). set (columns := map _ (seq 0 n)).
  set (columns' := map (fun wc => if bit (fst wc) (fst p) then ones else snd wc) columns).
  destruct (add_rows_reaches held possible (snd p) qs q Hz j (fold_left exchange_columns taken columns') Hj E)
    as (bits & Hbits & Hall).
  exists bits. split.
  - apply in_map_iff. exists (encode bits (snd p + snd q)). split; [apply decode_encode|].
    match goal with |- In _ (PositiveSet.elements ?all) =>
      assert (Hin : PositiveSet.In (encode bits (snd p + snd q)) all) end.
    { apply fold_reaches with (b := p); auto. intros all p'. apply add_rows_keeps. }
    apply PositiveSet.elements_spec1, SetoidList.InA_alt in Hin. now destruct Hin as (code' & <- & Hin).
  - intro w. rewrite Hbits, columns_run. f_equal. apply run_ext. intro v. unfold columns', columns.
    rewrite map_map. cbn [fst snd]. destruct (lt_dec v n) as [Hv|Hv].
    + rewrite (nth_indep _ _ (if bit 0 (fst p) then ones else column 0 qs)) by now rewrite map_length, seq_length.
      rewrite (map_nth (fun v => if bit v (fst p) then ones else column v qs) (seq 0 n) 0 v).
      rewrite seq_nth, Nat.add_0_l by auto.
      destruct (bit v (fst p)); [|rewrite bit_column; exact (f_equal (fun q => bit v (fst q)) E)].
      unfold ones. rewrite bit_column.
      rewrite (nth_indep _ _ ((fun _ => (1%N, 0)) (0%N, 0))) by now rewrite map_length.
      now rewrite (map_nth (fun _ => (1%N, 0))).
    + rewrite nth_overflow by (rewrite map_length, seq_length; lia).
      specialize (Hn v). destruct (bit v (fst p) || bit v (fst q)); [|now destruct j]. now destruct Hv; auto.
Qed.

Section Invariant.
  Variables (n : nat) (ranked : list (nat * nat)) (network : list comparator) (admissible : (nat -> bool) -> Prop).

  (** The values s of the wires are one of the patterns, with the zeros of the input x. *)
  Definition agrees (x s : nat -> bool) (k : component) : Prop :=
    exists p, In p (patterns k) /\ snd p = zeros (map x (inputs k))
    /\ forall w, bit w (fst p) = bit w (held k) && s w.

  (** Input x has r or r + 1 zeros, for the rank r of a wire. *)
  Definition relevant (x : nat -> bool) : Prop :=
    exists w r, In (w, r) ranked /\ let t := zeros (map x (seq 0 n)) in t = r \/ t = S r.

  (** Each admissible input of r or r + 1 zeros leads to values s that agree with a pattern of each component, and from
      which the comparators todo lead to the outputs of the network. *)
  Definition invariant (components : list component) (todo : list numbered) : Prop :=
    Permutation (concat (map inputs components)) (seq 0 n)
    /\ (forall k w, In k components -> bit w (held k) = true -> In w (inputs k))
    /\ forall x, admissible x -> relevant x -> exists s,
         (forall w r, In (w, r) ranked -> run01 (map snd todo) s w = run01 network x w)
         /\ forall k, In k components -> agrees x s k.

  (** z zeros of m inputs are part of z ... z + n - m zeros. *)
  Lemma zeros_of_part l l' x : Permutation (l ++ l') (seq 0 n) ->
    let z := zeros (map x l) in z <= zeros (map x (seq 0 n)) <= z + (n - length l).
  Proof.
    intros H z. pose proof (Permutation_length H) as L. rewrite app_length, seq_length in L.
    rewrite <- (zeros_permutation _ _ (Permutation_map x H)), map_app, zeros_app. fold z.
    pose proof (zeros_at_most (map x l')) as Z. rewrite map_length in Z. lia.
  Qed.

  Lemma possible_zeros l l' x : Permutation (l ++ l') (seq 0 n) -> relevant x ->
    bit (zeros (map x l)) (zeros_possible n ranked (length l)) = true.
  Proof.
    intros H (w & r & Hr & Ht). pose proof (zeros_of_part l l' x H) as Z. cbv zeta in Z, Ht.
    unfold zeros_possible. rewrite bit_mask, mem_In. apply filter_In. split.
    - apply in_seq. pose proof (zeros_at_most (map x l)) as L. rewrite map_length in L. lia.
    - apply existsb_exists. exists (w, r). split; auto. cbn [snd].
      apply orb_true_iff. destruct Ht; [left|right]; apply andb_true_iff; split; apply Nat.leb_le; lia.
  Qed.

  Lemma invariant_permutation components components' todo :
    Permutation components components' -> invariant components todo -> invariant components' todo.
  Proof.
    intros H (Hp & Hsub & Hx). repeat split.
    - rewrite <- Hp, <- !flat_map_concat_map. symmetry. now apply Permutation_flat_map.
    - intros k w Hk. apply Hsub. now apply Permutation_in with (2 := Hk), Permutation_sym.
    - intros x H1 H2. destruct (Hx x H1 H2) as (s & Hs & Hk). exists s. split; auto.
      intros k Hin. apply Hk. now apply Permutation_in with (2 := Hin), Permutation_sym.
  Qed.

  Lemma invariant_nothing components todo : invariant components todo -> invariant (nothing :: components) todo.
  Proof.
    intros (Hp & Hsub & Hx). split; [exact Hp|]. split.
    - intros k w [<-|Hk]; [discriminate|]. now apply Hsub.
    - intros x H1 H2. destruct (Hx x H1 H2) as (s & Hs & Hk). exists s. split; auto.
      intros k [<-|Hin]; auto. exists (0%N, 0). repeat split. now left.
  Qed.

  (** A join keeps the invariant. *)
  Lemma join_to_invariant a b rest todo k left :
    join_to n ranked a b todo = (k, left) -> invariant (a :: b :: rest) todo -> invariant (k :: rest) left.
  Proof.
    unfold join_to. set (before := N.lor (held a) (held b)).
    destruct (take before todo) as [taken left'] eqn:T. intro E. injection E as <- <-.
    destruct (take_correct _ _ _ _ T) as (Hfree & Hrun). intros (Hp & Hsub & Hx).
    assert (whole : Permutation ((inputs a ++ inputs b) ++ concat (map inputs rest)) (seq 0 n)).
    { rewrite <- app_assoc. exact Hp. }
    assert (before_sub : forall w, bit w before = true -> In w (inputs a ++ inputs b)).
    { intros w. unfold before. rewrite bit_lor, orb_true_iff, in_app_iff.
      intros [H|H]; [left|right]; apply (Hsub _ w) in H; simpl; auto. }
    assert (in_below : forall w, bit w before = true -> w < n).
    { intros w Hw. assert (In w (seq 0 n)) as H; [|apply in_seq in H; lia].
      apply Permutation_in with (1 := whole), in_or_app. auto. }
    split; [exact whole|]. split.
    - intros k w [<-|Hk]; cbn [held inputs].
      + rewrite bit_land, andb_true_iff. intros (H & _). auto.
      + apply Hsub. simpl; auto.
    - intros x H1 H2. destruct (Hx x H1 H2) as (s & Hs & Hk). exists (run01 taken s). split.
      { intros w r Hr. rewrite <- Hrun. eauto. }
      intros k [<-|Hin].
      + destruct (Hk a) as (p & Pin & Pz & Pbits); [simpl; auto|].
        destruct (Hk b) as (q & Qin & Qz & Qbits); [simpl; auto|].
        assert (Hz : snd p + snd q = zeros (map x (inputs a ++ inputs b))).
        { now rewrite map_app, zeros_app, Pz, Qz. }
        destruct (all_pairs_has n taken (N.land before (needed ranked left')) (zeros_possible n ranked
          (length (inputs a ++ inputs b))) (patterns a) (patterns b) p q) as (bits & Hin & Hbits); auto.
        { rewrite Hz. now apply (possible_zeros _ _ x whole). }
        { intros w Hw. apply in_below. rewrite Pbits, Qbits, <- andb_orb_distrib_l, <- bit_lor in Hw.
          now apply andb_true_iff in Hw. }
        exists (bits, snd p + snd q). split; [exact Hin|]. split; [exact Hz|]. intro w. cbn [fst held]. rewrite Hbits.
        rewrite bit_land. destruct (bit w before) eqn:Hw; auto. cbn [andb].
        destruct (bit w (needed ranked left')); auto. cbn [andb].
        apply run_within with (set := fun v => bit v before = true); auto.
        intros v Hv. rewrite Pbits, Qbits, <- andb_orb_distrib_l, <- bit_lor. fold before. now rewrite Hv.
      + destruct (Hk k) as (p & Pin & Pz & Pbits); [simpl; auto|]. exists p. repeat split; auto.
        intro w. rewrite Pbits. destruct (bit w (held k)) eqn:Hw; auto. simpl. symmetry. apply run_other.
        assert (Hrest : In w (concat (map inputs rest))).
        { apply in_concat. exists (inputs k). split; [now apply in_map|]. apply Hsub; simpl; auto. }
        assert (outside : forall v, bit v before = true -> w <> v).
        { intros v Hv ->. apply before_sub in Hv. revert Hv Hrest. apply distinct_parts.
          eapply Permutation_NoDup; [symmetry; exact whole|apply seq_NoDup]. }
        intros c Hc. destruct (Hfree c Hc). auto.
  Qed.

  Lemma join_invariant a b rest todo k left :
    join n ranked a b todo = (k, left) -> invariant (a :: b :: rest) todo -> invariant (k :: rest) left.
  Proof.
    unfold join. destruct (_ <=? _); intros J I; apply (join_to_invariant _ _ _ _ _ _ J); auto.
    now apply invariant_permutation with (1 := perm_swap b a rest).
  Qed.

  Definition all_right : Prop :=
    forall w r, In (w, r) ranked -> forall x, admissible x -> relevant x -> right01 n network w r x.

  Lemma finished_right components todo :
    finished n ranked components todo = true -> invariant components todo -> all_right.
  Proof.
    unfold finished. intros F (Hp & _ & Hx) w r Hr x H1 H2. destruct todo; [|easy].
    destruct (Hx x H1 H2) as (s & Hs & Hk). red. rewrite <- (Hs w r Hr). change (run01 (map snd []) s w) with (s w).
    apply andb_true_iff in F as (_ & F). rewrite forallb_forall in F. specialize (F _ Hr). cbv beta iota in F.
    apply existsb_exists in F as (k & Kin & F). apply andb_true_iff in F as (Hw & F). rewrite forallb_forall in F.
    destruct (Hk k Kin) as (p & Pin & Pz & Pbits). specialize (F p Pin). unfold right in F.
    rewrite Pbits, Hw, Pz in F. cbn [andb] in F.
    destruct (in_split _ _ Kin) as (l & l' & ->).
    assert (part : Permutation (inputs k ++ concat (map inputs (l ++ l'))) (seq 0 n)).
    { rewrite <- Hp, !map_app, !concat_app. simpl. now rewrite Permutation_app_swap_app. }
    pose proof (zeros_of_part _ _ x part) as Z. cbv zeta in Z. symmetry.
    destruct (s w); [apply Nat.leb_le in F; apply Nat.leb_le|apply Nat.ltb_lt in F; apply Nat.leb_gt]; lia.
  Qed.

  Lemma find_component_permutation w : forall components k rest,
    find_component w components = Some (k, rest) -> Permutation components (k :: rest).
  Proof.
    induction components as [|k components IH]; intros k' rest; simpl; [easy|].
    destruct (bit w (held k)). { intro E. now injection E as -> ->. }
    destruct (find_component w components) as [[found others]|]; [|easy]. intro E. injection E as <- <-.
    rewrite (IH _ _ eq_refl). apply perm_swap.
  Qed.

  Lemma by_patterns_right steps : forall components todo,
    by_patterns n ranked steps components todo = true -> invariant components todo -> all_right.
  Proof.
    induction steps as [|[i count] steps IH]; intros components todo; cbn [by_patterns]. { apply finished_right. }
    destruct (next_comparator i todo) as [[lo hi]|]; [|easy].
    destruct (find_component lo components) as [[a rest]|] eqn:Ea; [|easy].
    destruct (find_component hi rest) as [[b rest']|] eqn:Eb; [|easy].
    destruct (join n ranked a b todo) as [k left] eqn:J. intros F I.
    apply andb_true_iff in F as (_ & F). apply (IH _ _ F), (join_invariant _ _ _ _ _ _ J).
    apply invariant_permutation with (2 := I).
    apply find_component_permutation in Ea, Eb. now rewrite Ea, Eb.
  Qed.

  Lemma begin_invariant unsettled : forall settled todo components left,
    begin n ranked settled unsettled todo = (components, left) ->
    invariant (settled ++ unsettled) todo -> invariant components left.
  Proof.
    induction unsettled as [|k unsettled IH]; intros settled todo components left; cbn [begin].
    { intro E. injection E as <- <-. now rewrite app_nil_r. }
    destruct (join n ranked nothing k todo) as [k' todo'] eqn:J. intros B I. apply (IH _ _ _ _ B).
    simpl. apply invariant_permutation with (k' :: unsettled ++ settled).
    { now rewrite (Permutation_app_comm settled). }
    apply (join_invariant _ _ _ _ _ _ J), invariant_nothing.
    apply invariant_permutation with (2 := I). rewrite Permutation_app_comm. reflexivity.
  Qed.

  Lemma by_exhaustion_right depth : forall components todo,
    by_exhaustion n ranked depth components todo = true -> invariant components todo -> all_right.
  Proof.
    induction depth as [|depth IH]; intros components todo; cbn [by_exhaustion]. { apply finished_right. }
    destruct todo as [|[i [lo hi]] todo]. { apply finished_right. }
    destruct (find_component lo components) as [[a rest]|] eqn:Ea; [|easy].
    destruct (find_component hi rest) as [[b rest']|] eqn:Eb; [|easy].
    destruct (join n ranked a b _) as [k left] eqn:J. intros F I.
    apply (IH _ _ F), (join_invariant _ _ _ _ _ _ J).
    apply invariant_permutation with (2 := I).
    apply find_component_permutation in Ea, Eb. now rewrite Ea, Eb.
  Qed.
End Invariant.

(** The invariant holds in the beginning. *)
Lemma invariant_in_the_beginning n ranked network groups : Permutation (concat groups) (seq 0 n) ->
  invariant n ranked network (admissible01 groups) (map component_of_group groups)
    (fst (keep (mask (map fst ranked)) (combine (seq 0 (length network)) network))).
Proof.
  intro Hp. repeat split.
  - rewrite map_map. simpl. now rewrite map_id.
  - intros k w Hk. apply in_map_iff in Hk as (g & <- & _). simpl. rewrite bit_mask. now apply mem_In.
  - intros x Hx _. exists x. split.
    + intros w r Hr. now apply kept_outputs with (r := r).
    + intros k Hk. apply in_map_iff in Hk as (g & <- & Hg).
      pose proof (zeros_at_most (map x g)) as L. rewrite map_length in L.
      exists (mask (skipn (zeros (map x g)) g), zeros (map x g)). repeat split.
      * change (patterns (component_of_group g)) with (map (fun z => (mask (skipn z g), z)) (seq 0 (S (length g)))).
        apply in_map_iff. exists (zeros (map x g)). split; auto. apply in_seq. lia.
      * intro w. simpl. rewrite !bit_mask. apply presorted_wires; auto.
        destruct (in_split _ _ Hg) as (l & l' & ->). rewrite concat_app in Hp. simpl in Hp.
        assert (Hd : NoDup (concat l ++ g ++ concat l')).
        { eapply Permutation_NoDup; [symmetry; exact Hp|apply seq_NoDup]. }
        now apply distinct_part in Hd.
Qed.
