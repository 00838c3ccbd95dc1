import { largestOf } from "../wgsl/magnitudes.js";
import { wovenName } from "../woven-names.js";
import type { ObservedStore, StoreObserver } from "./store-observer.js";

/** The effect of a store on a result. */
export interface StoredRange {
  readonly elements: number;
  /** Elements that rounding changed from nonzero to 0. */
  readonly roundedToZero: number;
  /** Elements that were 0 before rounding. */
  readonly exactZeros: number;
  /** The largest magnitude before rounding; infinite or NaN where an element was. */
  readonly largest: number;
}

/** uint32 words of one slot: rounded to zero, exact zeros, bits of the largest magnitude as float32, elements. */
export const storedRangeWords = 4;

const observedWords = wovenName("observed");
const rangeOf = (result: string): string => wovenName(`range_${result}`);
const lengthOf = (result: string): string => wovenName(`length_${result}`);
const slotOf = (result: string): string => wovenName(`slot_${result}`);

/**
 * Adds to the words of a slot the number of elements that a store rounds to zero, which cannot be seen in memory afterwards,
 * and of those that were 0 before. Raises the largest magnitude. Counts are the same in any order, and exact up to 2^32
 * elements.
 */
export const storedRange: StoreObserver = {
  name: "range",
  binding: { name: observedWords, access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
  scalars: (result) => [
    { name: lengthOf(result), type: "u32" },
    { name: slotOf(result), type: "u32", runtime: true },
  ],
  values: (result, { length }, slot) => ({ [lengthOf(result)]: length, [slotOf(result)]: slot }),
  declarations: (results) => results.map(declaration).join(""),
  tell: (results) =>
    results
      .map(
        (result) => `  {
    let at = s.${slotOf(result)} * ${storedRangeWords}u;
    if (${rangeOf(result)}.x > 0u) { add_${observedWords}(at, ${rangeOf(result)}.x); }
    if (${rangeOf(result)}.y > 0u) { add_${observedWords}(at + 1u, ${rangeOf(result)}.y); }
    if (${rangeOf(result)}.z > 0u) { max_${observedWords}(at + 2u, ${rangeOf(result)}.z); }
    if (${rangeOf(result)}.w > 0u) { add_${observedWords}(at + 3u, ${rangeOf(result)}.w); }
  }
`,
      )
      .join(""),
  reference(before, after, words, scalars, result) {
    const at = (scalars[slotOf(result)] as number) * storedRangeWords;
    const add = (word: number, count: number): void => {
      words[at + word] = (words[at + word] as number) + count;
    };
    let largest = 0;
    for (let i = 0; i < before.length; i++) {
      const value = before[i] as number;
      if (value === 0) add(1, 1);
      else if (after[i] === 0) add(0, 1);
      largest = Math.max(largest, Math.abs(value));
    }
    words[at + 2] = Math.max(words[at + 2] as number, bitsOf(largest));
    add(3, before.length);
  },
};

/** Declares counts in registers of an invocation, and a function that adds a unit to them, without elements past the end. */
function declaration({ name, unit }: ObservedStore): string {
  const elements = [0, 1, 2, 3].map((k) => (k < unit ? `i * ${unit}u + ${k}u` : "0xffffffffu"));
  return `var<private> ${rangeOf(name)}: vec4u;
fn ${wovenName("observe")}_${name}(i: u32, before: vec4u, after: vec4u) {
  let inside = vec4u(${elements.join(", ")}) < vec4u(s.${lengthOf(name)});
  let was = before == vec4u();
  let gone = after == vec4u();
  let counts = vec4u(inside & gone & !was) + (vec4u(inside & was) << vec4u(8u)) + (vec4u(inside) << vec4u(16u));
  let count = counts.x + counts.y + counts.z + counts.w;
  let kept = select(vec4u(), before, inside);
  ${rangeOf(name)} = vec4u(${rangeOf(name)}.x + (count & 0xffu), ${rangeOf(name)}.y + ((count >> 8u) & 0xffu),
    max(${rangeOf(name)}.z, ${largestOf("kept")}), ${rangeOf(name)}.w + (count >> 16u));
}
`;
}

/** Decodes the words of a slot. */
export function storedRangeIn(words: ArrayLike<number>, slot: number): StoredRange {
  const at = slot * storedRangeWords;
  const [roundedToZero, exactZeros, bits, elements] = [0, 1, 2, 3].map(
    (word) => words[at + word] as number,
  ) as [number, number, number, number];
  return { elements, roundedToZero, exactZeros, largest: floatOf(bits) };
}

const scratch = new Float32Array(1);
const scratchBits = new Uint32Array(scratch.buffer);

function bitsOf(value: number): number {
  scratch[0] = value;
  return scratchBits[0] as number;
}

function floatOf(bits: number): number {
  scratchBits[0] = bits;
  return scratch[0] as number;
}
