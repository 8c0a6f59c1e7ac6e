// four.v: exact sorting of 4 values, a module in Verilog-2005.
//
// Made by: nsc emit verilog best --n 4 --name four
// nsc:     0
// Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
// Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
// Licence: MIT, Copyright (c) 2026 The nsc authors
// SPDX-License-Identifier: MIT
//
// An item is a key, by which it is ordered, and a tag below: ITEM = KEY_WIDTH + TAG_WIDTH bits.
//
//   KEY_WIDTH         bits of a key, the high ones of an item
//   TAG_WIDTH         bits of a tag, which travels with its key; 0 for none
//   IS_SIGNED         whether keys are numbers in two's complement; else they are unsigned
//   LAYERS_PER_STAGE  0: no registers, clk, reset and enable do nothing. Else a pipeline: registers behind the last
//                     layer and behind every so many before it
//
//   clk               registers take their values on a rising edge
//   reset             1 clears the valid bits on an edge, whatever enable is; items need no reset
//   enable            0 holds all registers
//   in_valid          whether in_items counts; out_valid says so of its results
//   in_items          item w is bits w * ITEM to (w + 1) * ITEM - 1
//   out_items         result r is bits r * ITEM to (r + 1) * ITEM - 1
//
// Results: all values, the smallest first.
// Equal keys: a comparator leaves their items as they are. So the network decides the order of items with equal
// keys, and of a selection which of them are results.
//
// Cost: 5 comparators, 0 half comparators. A half comparator has the minimum or the maximum alone.
// Latency: 3 / LAYERS_PER_STAGE clocks, rounded up; every clock takes new items.
// With 1, 2, 3 layers per stage: 3, 2, 1 clocks, registers for 12, 8, 4 items and a valid bit a stage.

module four #(
    parameter KEY_WIDTH = 8,
    parameter TAG_WIDTH = 0,
    parameter IS_SIGNED = 0,
    parameter LAYERS_PER_STAGE = 0
) (
    input wire clk, reset, enable, in_valid,
    input wire [4*(KEY_WIDTH+TAG_WIDTH)-1:0] in_items,
    output wire out_valid,
    output wire [4*(KEY_WIDTH+TAG_WIDTH)-1:0] out_items
);

    localparam ITEM = KEY_WIDTH + TAG_WIDTH;
    localparam PERIOD = LAYERS_PER_STAGE == 0 ? 1 : LAYERS_PER_STAGE;
    localparam STAGES = LAYERS_PER_STAGE == 0 ? 0 : (3 + PERIOD - 1) / PERIOD;

    function is_greater(input [KEY_WIDTH-1:0] a, input [KEY_WIDTH-1:0] b);
        is_greater = IS_SIGNED != 0 ? $signed(a) > $signed(b) : a > b;
    endfunction

    function [ITEM-1:0] smaller(input [ITEM-1:0] a, input [ITEM-1:0] b);
        smaller = is_greater(a[ITEM-1:TAG_WIDTH], b[ITEM-1:TAG_WIDTH]) ? b : a;
    endfunction

    function [ITEM-1:0] larger(input [ITEM-1:0] a, input [ITEM-1:0] b);
        larger = is_greater(a[ITEM-1:TAG_WIDTH], b[ITEM-1:TAG_WIDTH]) ? a : b;
    endfunction

    // Inputs.
    wire [ITEM-1:0] w0_0 = in_items[0*ITEM +: ITEM];
    wire [ITEM-1:0] w1_0 = in_items[1*ITEM +: ITEM];
    wire [ITEM-1:0] w2_0 = in_items[2*ITEM +: ITEM];
    wire [ITEM-1:0] w3_0 = in_items[3*ITEM +: ITEM];

    // Layer 1: 2 comparators, 0 half comparators.
    wire [ITEM-1:0] c0_1 = smaller(w0_0, w2_0), c2_1 = larger(w0_0, w2_0);
    wire [ITEM-1:0] c1_1 = smaller(w1_0, w3_0), c3_1 = larger(w1_0, w3_0);
    reg [ITEM-1:0] w0_1, w1_1, w2_1, w3_1;
    generate
        if (STAGES > 0 && 2 % PERIOD == 0) begin : registers_1
            always @(posedge clk) if (enable) begin
                w0_1 <= c0_1; w1_1 <= c1_1; w2_1 <= c2_1; w3_1 <= c3_1;
            end
        end else begin : wires_1
            always @* begin
                w0_1 = c0_1; w1_1 = c1_1; w2_1 = c2_1; w3_1 = c3_1;
            end
        end
    endgenerate

    // Layer 2: 2 comparators, 0 half comparators.
    wire [ITEM-1:0] c0_2 = smaller(w0_1, w1_1), c1_2 = larger(w0_1, w1_1);
    wire [ITEM-1:0] c2_2 = smaller(w2_1, w3_1), c3_2 = larger(w2_1, w3_1);
    reg [ITEM-1:0] w0_2, w1_2, w2_2, w3_2;
    generate
        if (STAGES > 0 && 1 % PERIOD == 0) begin : registers_2
            always @(posedge clk) if (enable) begin
                w0_2 <= c0_2; w1_2 <= c1_2; w2_2 <= c2_2; w3_2 <= c3_2;
            end
        end else begin : wires_2
            always @* begin
                w0_2 = c0_2; w1_2 = c1_2; w2_2 = c2_2; w3_2 = c3_2;
            end
        end
    endgenerate

    // Layer 3: 1 comparator, 0 half comparators.
    wire [ITEM-1:0] c1_3 = smaller(w1_2, w2_2), c2_3 = larger(w1_2, w2_2);
    reg [ITEM-1:0] w0_3, w1_3, w2_3, w3_3;
    generate
        if (STAGES > 0 && 0 % PERIOD == 0) begin : registers_3
            always @(posedge clk) if (enable) begin
                w0_3 <= w0_2; w1_3 <= c1_3; w2_3 <= c2_3; w3_3 <= w3_2;
            end
        end else begin : wires_3
            always @* begin
                w0_3 = w0_2; w1_3 = c1_3; w2_3 = c2_3; w3_3 = w3_2;
            end
        end
    endgenerate

    // Results.
    assign out_items[0*ITEM +: ITEM] = w0_3;
    assign out_items[1*ITEM +: ITEM] = w1_3;
    assign out_items[2*ITEM +: ITEM] = w2_3;
    assign out_items[3*ITEM +: ITEM] = w3_3;

    generate
        if (STAGES == 0) begin : no_latency
            assign out_valid = in_valid;
            wire unused = &{1'b0, clk, reset, enable};
        end else begin : latency
            reg [STAGES-1:0] valid;
            wire [STAGES:0] valids = {valid, in_valid};
            always @(posedge clk)
                if (reset) valid <= {STAGES{1'b0}};
                else if (enable) valid <= valids[STAGES-1:0];
            assign out_valid = valids[STAGES];
        end
    endgenerate

endmodule
