(* The text of a certificate, and what the verified [Certificate.check] says of it. This file is not verified:
   it has to read the network and the claims as they stand in the text. *)

open Certificate

exception Rejected of string
exception Unable of string

let reject format = Printf.ksprintf (fun why -> raise (Rejected why)) format
let largest = 1048576   (* number of a wire or comparator *)
let most_wires = 1024   (* Coq's numbers are slow *)

(* nats.(i) is the number i. All share their parts, so a number takes no memory of its own. *)
let nats = Array.make (largest + 1) O
let () = for i = 1 to largest do nats.(i) <- S nats.(i - 1) done

let rec positive i = if i = 1 then XH else if i land 1 = 0 then XO (positive (i / 2)) else XI (positive (i / 2))

let number word =
  let digits = word <> "" && String.for_all (function '0' .. '9' -> true | _ -> false) word in
  if not digits || (word.[0] = '0' && word <> "0") then reject "%S is no number" word;
  if String.length word > 18 then reject "%s is too large" word;
  int_of_string word

let nat word =
  let i = number word in
  if i > largest then reject "%s is too large" word else nats.(i)

let comparator word = match String.split_on_char ':' word with
  | [ lo; hi ] -> (nat lo, nat hi)
  | _ -> reject "%S is no comparator" word

let join line = match String.split_on_char ' ' line with
  | [ "join"; c; count ] -> (nat c, match number count with 0 -> N0 | i -> Npos (positive i))
  | _ -> reject "%S is no step" line

let merge line = match String.split_on_char ' ' line with
  | [ "inside"; c ] -> Inside (nat c)
  | [ "merge"; name; fill; a; b ] ->
      let find table word = try List.assoc word table with Not_found -> reject "%S is no word here" word in
      Merge (find [ ("bitonic", Bitonic); ("odd-even", Odd_even) ] name,
             find [ ("none", Fill_none); ("above", Fill_above); ("below", Fill_below) ] fill, nat a, nat b)
  | _ -> reject "%S is no step" line

(* The lines in order. [next], a reader of the words of a line, is asked with what the line has to begin with. *)
let certificate text =
  let lines = match List.rev (String.split_on_char '\n' text) with
    | "" :: lines -> ref (List.rev lines) | _ -> reject "the last line does not end" in
  let next keyword read = match !lines with
    | line :: rest -> (match String.split_on_char ' ' line with
        | word :: words when List.mem word keyword -> lines := rest; Some (read word words)
        | _ -> None)
    | [] -> None in
  let one keyword read =
    match next [ keyword ] (fun _ -> read) with Some value -> value | None -> reject "a line %s is missing" keyword in
  let rec many keyword read =
    match next keyword read with Some value -> value :: many keyword read | None -> [] in
  let comparators = function [] -> reject "a line without comparators" | words -> List.map comparator words in
  let word = function [ word ] -> word | _ -> reject "a line has to have one word" in
  let claim keyword = function
    | first :: wires ->
        let first = nat first and wires = List.map nat wires in
        if keyword = "ranks" then Ranks (first, wires) else Together (first, wires)
    | [] -> reject "a claim without a rank" in
  if one "nsc-certificate" word <> "1" then reject "the version is not 1";
  let i = number (one "wires" word) in
  if i > largest then reject "there are more than %d wires" largest;
  if i > most_wires then raise (Unable (Printf.sprintf "more than %d wires are too many for this checker" most_wires));
  let layers = many [ "layer" ] (fun _ -> comparators) in
  let presorted = many [ "presorted" ] (fun _ -> List.map nat) in
  let claims = many [ "ranks"; "set" ] claim in
  let behind = Option.value (next [ "behind" ] (fun _ -> comparators)) ~default:[] in
  let name = one "proof" word in
  let rec steps read = match !lines with
    | [ "end" ] | [] -> []
    | line :: rest -> lines := rest; let first = read line in first :: steps read in
  let proof = match name with
    | "exhaustion" -> Exhaustion
    | "primitive" -> Primitive
    | "merges" -> Merges (steps merge)
    | "patterns" -> Patterns (steps join)
    | "clauses" -> raise (Unable "this checker follows no proof by clauses")
    | _ -> reject "%S is no method" name in
  if !lines <> [ "end" ] then reject "the text does not end with the line end";
  (name, { wires = nats.(i); layers; presorted; claims; behind; proof })

let read name = let file = open_in_bin name in
  Fun.protect ~finally:(fun () -> close_in file) (fun () -> really_input_string file (in_channel_length file))

(* The numbers of a file by twos: what is no digit divides them. *)
let network text =
  let spaced = String.map (function '0' .. '9' as c -> c | _ -> ' ') text in
  let rec pairs = function
    | lo :: hi :: rest -> (nat lo, nat hi) :: pairs rest
    | [] -> [] | _ -> reject "the network has an odd number of numbers" in
  pairs (List.filter (( <> ) "") (String.split_on_char ' ' spaced))

let verdict files =
  let name, c = certificate (read (List.hd files)) in
  if List.exists (fun file -> network (read file) <> List.concat c.layers) (List.tl files) then
    reject "the certificate is of another network";
  if not (well_formed c) then reject "the text breaks a rule of the format";
  if not (check c) then reject "the steps are no proof of the claims";
  let counted i noun = Printf.sprintf "%d %s%s" i noun (if i = 1 then "" else "s") in
  let rec value = function O -> 0 | S i -> 1 + value i in
  Printf.sprintf "%s, %s, %s: %s, by %s" (counted (value c.wires) "wire")
    (counted (List.length (List.concat c.layers)) "comparator") (counted (List.length c.layers) "layer")
    (counted (List.length c.claims) "claim") name

let () =
  Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 24; space_overhead = 400 };   (* four times as fast *)
  let unable why = prerr_endline why; exit 2 in
  match Array.to_list Sys.argv with
  | _ :: ([ _ ] | [ _; _ ] as files) -> (
      match verdict files with
      | figures -> print_endline ("accepted: " ^ figures)
      | exception Rejected why -> print_endline ("rejected: " ^ why); exit 1
      | exception (Unable why | Sys_error why) -> unable why
      | exception (Out_of_memory | Stack_overflow) -> unable "the proof is too large for this checker")
  | _ -> unable "usage: checker CERTIFICATE [NETWORK]"
