import type { InsideState } from "./page-state.js";

/** A place to begin at. */
export interface Story {
  readonly label: string;
  readonly state: Partial<InsideState>;
  readonly text: string;
}

const moons = { task: "moons", setup: "float16" } as const;

/** In an order in which each needs only what the ones before it showed. Positions are those of the recording. */
export const stories: readonly Story[] = [
  {
    label: "A step, as recorded",
    state: { ...moons, stage: "recorded", at: -1 },
    text: "A tiny network learns two moons. Down the left side it guesses and computes the loss; up the right side it computes how each weight should change. Click a launch.",
  },
  {
    label: "Why float32 here?",
    state: { ...moons, stage: "recorded", at: 10 },
    text: "Products run in float16, where they are fast. The loss sums exponentials, which float16 would round to nothing or to infinity: its policy is float32.",
  },
  {
    label: "A cast costs a launch",
    state: { ...moons, stage: "recorded", at: 0 },
    text: "Between float32 and float16 somebody has to convert. As recorded, each conversion is a launch of its own: it reads all numbers and writes them again.",
  },
  {
    label: "Where did it go?",
    state: { ...moons, stage: "foldCasts", at: 0 },
    text: "The product now reads float32 itself and rounds on the way in: f32 → f16. Same bits, one launch less.",
  },
  {
    label: "The whole plan",
    state: { ...moons, stage: "reuseMemory", at: -1 },
    text: "All passes of the planner: less than half the launches, no cast left, and values share memory. Drag the slider back and forth.",
  },
  {
    label: "A GPT",
    state: { task: "text", setup: "float16", stage: "reuseMemory", at: -1 },
    text: "Two layers of a GPT. The backward pass needs what the forward pass has left: lines across the middle are values that wait in memory until then.",
  },
];
