import type { RuntimeOptions } from "@halfstep/tensor";

type PassName = NonNullable<RuntimeOptions["passes"]>[number];

/** The planner after one of its passes. */
export interface Stage {
  readonly id: "recorded" | PassName;
  readonly label: string;
  /** What the pass does, for people who have not seen a planner. */
  readonly text: string;
}

/** The planner's passes for GPUs in their order, after the step as it was recorded. */
export const stages: readonly Stage[] = [
  {
    id: "recorded",
    label: "As recorded",
    text: "Every op has left its launches, one after the other, and each value has memory of its own.",
  },
  {
    id: "removeDeadLaunches",
    label: "Drop what nobody reads",
    text: "Results that nothing uses are not computed.",
  },
  {
    id: "foldCasts",
    label: "Fold casts",
    text: "A cast needs no launch of its own: the launch before it stores the rounded number, or the launch after it loads the number through the cast.",
  },
  {
    id: "foldHeadLayouts",
    label: "Leave heads where they are",
    text: "Attention reads its heads where the projections left them, so nothing is moved around in memory.",
  },
  {
    id: "storeHalfCopies",
    label: "Store half copies of weights",
    text: "The optimizer has each new weight at hand. It stores the 16-bit copy that the next step reads, too.",
  },
  {
    id: "narrowStorage",
    label: "Store in 16 bits",
    text: "A number that was rounded to 16 bits anyway is stored in 16 bits: half the memory, half the traffic.",
  },
  {
    id: "rematerializeSums",
    label: "Add again",
    text: "The backward pass adds two terms again where that takes less memory than to keep their sum.",
  },
  {
    id: "fuseElementwise",
    label: "Join elementwise launches",
    text: "Chains of additions and activations run as one launch: the numbers stay in registers.",
  },
  {
    id: "fuseEpilogues",
    label: "Finish in the store",
    text: "A bias or an activation behind a product becomes part of the product's store.",
  },
  {
    id: "storeBothPrecisions",
    label: "Store both precisions",
    text: "A value that some launches read rounded and others whole is stored twice by the launch that has it.",
  },
  {
    id: "foldAccumulations",
    label: "Add gradients where they are made",
    text: "The launch that computes a gradient adds it to the one that is there.",
  },
  {
    id: "fuseScaleUpdate",
    label: "Update the loss scale on the way",
    text: "The launch that decides whether a step is skipped also moves the loss scale.",
  },
  {
    id: "reuseMemory",
    label: "Share memory",
    text: "Values that do not live at the same time lie in the same memory. The peak is known before anything runs.",
  },
];

/** The names of all stages, for the address. */
export type StageId = Stage["id"];

/** The passes up to a stage. */
export const passesUntil = (id: StageId): readonly PassName[] =>
  stages
    .slice(0, stages.findIndex((stage) => stage.id === id) + 1)
    .flatMap((stage) => (stage.id === "recorded" ? [] : [stage.id]));
