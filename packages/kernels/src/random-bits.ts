import type { KernelScalar } from "@halfstep/device";
import { philox4x32 } from "@halfstep/formats/philox";
import { philox4x32 as philoxWgsl } from "@halfstep/formats/wgsl";
import { requireWhole } from "./attributes.js";

/**
 * A source of random numbers: four 32-bit words for each quad of elements, Philox4x32-10 of the counter (block + quad, stream)
 * under the key. The same on the CPU and on every GPU.
 */
export interface RandomSource {
  /** Whole numbers up to 2^53 − 1. */
  readonly seed: number;
  /** Index of the first quad's block of four words. */
  readonly block: number;
  readonly stream: number;
}

/**
 * The scalars of a source. They are not part of a plan: a later step draws other numbers with the same programs.
 *
 * @throws RangeError for numbers out of range.
 */
export function sourceWords({ seed, block, stream }: RandomSource): Record<string, number> {
  requireWhole("a random source", "seed", seed, 0);
  requireWhole("a random source", "block", block, 0);
  requireWhole("a random source", "stream", stream, 0, 0xffffffff);
  return {
    seed0: seed >>> 0,
    seed1: Math.floor(seed / 2 ** 32),
    block0: block >>> 0,
    block1: Math.floor(block / 2 ** 32),
    stream,
  };
}

/** The scalars that {@link bitsOfQuad} needs. */
export const sourceScalars: readonly KernelScalar[] = [
  "seed0",
  "seed1",
  "block0",
  "block1",
  "stream",
].map((name) => ({
  name,
  type: "u32" as const,
  runtime: true,
}));

/** `fn draw_words(q: u32, block: vec2u, stream: u32, seed: vec2u) -> vec4u`: the q-th block of words of a source. */
export const drawWords: string = /* wgsl */ `${philoxWgsl}
fn draw_words(q: u32, block: vec2u, stream: u32, seed: vec2u) -> vec4u {
  let low = block.x + q;
  let high = block.y + select(0u, 1u, low < q);
  return philox4x32(vec4u(low, high, 0u, stream), seed);
}
`;

/** `fn draw_bits(q: u32, block: vec2u, stream: u32, seed: vec2u) -> vec4u`: words of quad q of a source, as integers below 2^24. */
export const drawBits: string = /* wgsl */ `${drawWords}
fn draw_bits(q: u32, block: vec2u, stream: u32, seed: vec2u) -> vec4u {
  return draw_words(q, block, stream, seed) >> vec4u(8u);
}
`;

/** WGSL: the words of quad `q` of the source whose scalars have this prefix. */
export const drawnBits = (q: string, prefix: string): string => {
  const [seed0, seed1, block0, block1, stream] = sourceScalars.map(
    ({ name }) => `s.${prefix}${name}`,
  );
  return `draw_bits(${q}, vec2u(${block0}, ${block1}), ${stream}, vec2u(${seed0}, ${seed1}))`;
};

/** `fn bits_of_quad(q: u32) -> vec4u`: words of quad q, as integers below 2^24. */
export const bitsOfQuad: string = /* wgsl */ `${drawBits}
fn bits_of_quad(q: u32) -> vec4u { return ${drawnBits("q", "")}; }
`;

/** The blocks of words of a source on the CPU. */
export function wordsOf(scalars: Readonly<Record<string, number>>): (block: number) => number[] {
  const { seed0, seed1, block0, block1, stream } = scalars as Record<string, number> &
    Record<"seed0" | "seed1" | "block0" | "block1" | "stream", number>;
  return (block) => {
    const low = block0 + block;
    const high = block1 + (low >= 2 ** 32 ? 1 : 0);
    return philox4x32([low >>> 0, high >>> 0, 0, stream], [seed0, seed1]);
  };
}

/** The words of quads on the CPU, as integers below 2^24. */
export function quadsOf(scalars: Readonly<Record<string, number>>): (quad: number) => number[] {
  const wordsOfBlock = wordsOf(scalars);
  return (quad) => wordsOfBlock(quad).map((word) => word >>> 8);
}

/** The word of an element on the CPU, from the scalars with this prefix. Requests in order draw each quad once. */
export function bitsOfElement(
  scalars: Readonly<Record<string, number>>,
  prefix: string,
): (element: number) => number {
  const bitsOf = quadsOf(
    Object.fromEntries(sourceScalars.map(({ name }) => [name, scalars[prefix + name] as number])),
  );
  let drawn = -1;
  let bits: readonly number[] = [];
  return (element) => {
    const quad = Math.floor(element / 4);
    if (quad !== drawn) [drawn, bits] = [quad, bitsOf(quad)];
    return bits[element % 4] as number;
  };
}
