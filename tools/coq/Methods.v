(** The methods of proof: what each one checks, and that it is sound.

    Nothing here has to be read by those who trust Coq: [Certificate.checked] does not mention it. In each section the
    functions that are extracted come first, and the proofs follow. *)

From Coq Require Import Arith NArith List Bool Permutation Sorted Lia MSetPositive Ndigits.
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

(** * Patterns, and exhaustion *)

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

(** * Primitive *)

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

(** * Merges *)

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
