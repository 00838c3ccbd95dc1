import type { LayoutName } from "./layouts.js";

/** A number worth a look, in the format in which something happens to it. */
export interface Story {
  readonly label: string;
  readonly format: LayoutName;
  readonly value: number;
  readonly text: string;
}

/** In an order in which each needs only what the ones before it showed. */
export const stories: readonly Story[] = [
  {
    label: "0.1",
    format: "float16",
    value: 0.1,
    text: "A tenth has no end in binary, as a third has none in decimal. float16 keeps 11 significant bits of it and is off by one part in 4,096.",
  },
  {
    label: "2,049",
    format: "float16",
    value: 2049,
    text: "From 2,048 on float16 counts in steps of two. There is no 2,049: it becomes 2,048, and adding 1 again and again gets nowhere.",
  },
  {
    label: "70,000",
    format: "float16",
    value: 70000,
    text: "float16 ends at 65,504. What lies beyond is infinite, and one infinite gradient ruins a whole step of training. Now choose bfloat16.",
  },
  {
    label: "257",
    format: "bfloat16",
    value: 257,
    text: "bfloat16 reaches as far as float32 but has 8 significant bits: it cannot tell 257 from 256. It spends on blue what float16 spends on orange.",
  },
  {
    label: "a gradient: 2 × 10⁻⁸",
    format: "float16",
    value: 2e-8,
    text: "Gradients are often this small. float16 makes 0 of it: the weight will not move. Multiply all gradients by 1,024 first, and they survive. That is loss scaling.",
  },
  {
    label: "a sum of squares: 3 × 10³⁸",
    format: "float32",
    value: 3e38,
    text: "Nearly the end of float32. Of the narrower formats only tfloat32 and bfloat16 come this far. The powers of two of e8m0 end at half of it.",
  },
  {
    label: "5 in four bits",
    format: "float4e2m1fn",
    value: 5,
    text: "A float4 has 4 and 6, and nothing between. Blocks of 32 share a scale, so that even so few numbers go a long way.",
  },
];
