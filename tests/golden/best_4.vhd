-- four.vhd: exact sorting of 4 values, an entity in VHDL-2008.
--
-- Made by: nsc emit vhdl best --n 4 --name four
-- nsc:     0
-- Network: 4 wires, 5 comparators, 3 layers, sha256 48ec7a7e8cfe0eda48139ec32efd574981e549cb5cded1490e79960ab517e1c4
-- Proof:   sorts every input, by exhaustion: all 2^4 0-1 inputs come out sorted
-- Licence: MIT, Copyright (c) 2026 The nsc authors
-- SPDX-License-Identifier: MIT
--
-- An item is a key, by which it is ordered, and a tag below: ITEM = KEY_WIDTH + TAG_WIDTH bits.
--
--   KEY_WIDTH         bits of a key, the high ones of an item
--   TAG_WIDTH         bits of a tag, which travels with its key; 0 for none
--   IS_SIGNED         whether keys are numbers in two's complement; else they are unsigned
--   LAYERS_PER_STAGE  0: no registers, clk, reset and enable do nothing. Else a pipeline: registers behind the last
--                     layer and behind every so many before it
--
--   clk               registers take their values on a rising edge
--   reset             1 clears the valid bits on an edge, whatever enable is; items need no reset
--   enable            0 holds all registers
--   in_valid          whether in_items counts; out_valid says so of its results
--   in_items          item w is bits w * ITEM to (w + 1) * ITEM - 1
--   out_items         result r is bits r * ITEM to (r + 1) * ITEM - 1
--
-- Results: all values, the smallest first.
-- Equal keys: a comparator leaves their items as they are. So the network decides the order of items with equal
-- keys, and of a selection which of them are results.
--
-- Cost: 5 comparators, 0 half comparators. A half comparator has the minimum or the maximum alone.
-- Latency: 3 / LAYERS_PER_STAGE clocks, rounded up; every clock takes new items.
-- With 1, 2, 3 layers per stage: 3, 2, 1 clocks, registers for 12, 8, 4 items and a valid bit a stage.

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity four is
    generic (
        KEY_WIDTH : positive := 8;
        TAG_WIDTH : natural := 0;
        IS_SIGNED : boolean := false;
        LAYERS_PER_STAGE : natural := 0
    );
    port (
        clk, reset, enable, in_valid : in std_logic;
        in_items : in std_logic_vector(4 * (KEY_WIDTH + TAG_WIDTH) - 1 downto 0);
        out_valid : out std_logic;
        out_items : out std_logic_vector(4 * (KEY_WIDTH + TAG_WIDTH) - 1 downto 0)
    );
end entity;

architecture rtl of four is

    constant ITEM : positive := KEY_WIDTH + TAG_WIDTH;
    subtype item_type is std_logic_vector(ITEM - 1 downto 0);
    constant PERIOD : positive := maximum(LAYERS_PER_STAGE, 1);
    constant STAGES : natural := minimum(LAYERS_PER_STAGE, 1) * (3 + PERIOD - 1) / PERIOD;

    function is_greater(a, b : item_type) return boolean is
    begin
        if IS_SIGNED then return signed(a(ITEM - 1 downto TAG_WIDTH)) > signed(b(ITEM - 1 downto TAG_WIDTH)); end if;
        return unsigned(a(ITEM - 1 downto TAG_WIDTH)) > unsigned(b(ITEM - 1 downto TAG_WIDTH));
    end function;

    function smaller(a, b : item_type) return item_type is
    begin
        if is_greater(a, b) then return b; else return a; end if;
    end function;

    function larger(a, b : item_type) return item_type is
    begin
        if is_greater(a, b) then return a; else return b; end if;
    end function;

    signal valid : std_logic_vector(0 to STAGES);
    signal w0_0 : item_type;
    signal w1_0 : item_type;
    signal w2_0 : item_type;
    signal w3_0 : item_type;
    signal c0_1, c2_1, c1_1, c3_1, w0_1, w1_1, w2_1, w3_1 : item_type;
    signal c0_2, c1_2, c2_2, c3_2, w0_2, w1_2, w2_2, w3_2 : item_type;
    signal c1_3, c2_3, w0_3, w1_3, w2_3, w3_3 : item_type;

begin

    -- Inputs.
    w0_0 <= in_items(0 * ITEM + ITEM - 1 downto 0 * ITEM);
    w1_0 <= in_items(1 * ITEM + ITEM - 1 downto 1 * ITEM);
    w2_0 <= in_items(2 * ITEM + ITEM - 1 downto 2 * ITEM);
    w3_0 <= in_items(3 * ITEM + ITEM - 1 downto 3 * ITEM);

    -- Layer 1: 2 comparators, 0 half comparators.
    c0_1 <= smaller(w0_0, w2_0); c2_1 <= larger(w0_0, w2_0);
    c1_1 <= smaller(w1_0, w3_0); c3_1 <= larger(w1_0, w3_0);
    registers_1 : if STAGES > 0 and 2 mod PERIOD = 0 generate
        process (clk) begin
            if rising_edge(clk) then
                if enable = '1' then
                    w0_1 <= c0_1; w1_1 <= c1_1; w2_1 <= c2_1; w3_1 <= c3_1;
                end if;
            end if;
        end process;
    else generate
        w0_1 <= c0_1; w1_1 <= c1_1; w2_1 <= c2_1; w3_1 <= c3_1;
    end generate;

    -- Layer 2: 2 comparators, 0 half comparators.
    c0_2 <= smaller(w0_1, w1_1); c1_2 <= larger(w0_1, w1_1);
    c2_2 <= smaller(w2_1, w3_1); c3_2 <= larger(w2_1, w3_1);
    registers_2 : if STAGES > 0 and 1 mod PERIOD = 0 generate
        process (clk) begin
            if rising_edge(clk) then
                if enable = '1' then
                    w0_2 <= c0_2; w1_2 <= c1_2; w2_2 <= c2_2; w3_2 <= c3_2;
                end if;
            end if;
        end process;
    else generate
        w0_2 <= c0_2; w1_2 <= c1_2; w2_2 <= c2_2; w3_2 <= c3_2;
    end generate;

    -- Layer 3: 1 comparator, 0 half comparators.
    c1_3 <= smaller(w1_2, w2_2); c2_3 <= larger(w1_2, w2_2);
    registers_3 : if STAGES > 0 and 0 mod PERIOD = 0 generate
        process (clk) begin
            if rising_edge(clk) then
                if enable = '1' then
                    w0_3 <= w0_2; w1_3 <= c1_3; w2_3 <= c2_3; w3_3 <= w3_2;
                end if;
            end if;
        end process;
    else generate
        w0_3 <= w0_2; w1_3 <= c1_3; w2_3 <= c2_3; w3_3 <= w3_2;
    end generate;

    -- Results.
    out_items(0 * ITEM + ITEM - 1 downto 0 * ITEM) <= w0_3;
    out_items(1 * ITEM + ITEM - 1 downto 1 * ITEM) <= w1_3;
    out_items(2 * ITEM + ITEM - 1 downto 2 * ITEM) <= w2_3;
    out_items(3 * ITEM + ITEM - 1 downto 3 * ITEM) <= w3_3;

    valid(0) <= in_valid;
    out_valid <= valid(STAGES);
    latency : for stage in 1 to STAGES generate
        process (clk) begin
            if rising_edge(clk) then
                if reset = '1' then
                    valid(stage) <= '0';
                elsif enable = '1' then
                    valid(stage) <= valid(stage - 1);
                end if;
            end if;
        end process;
    end generate;

end architecture;
