import {
  type Field,
  type Fields,
  integerField,
  numberField,
  wordField,
} from "../site/url-state.js";
import { type SetupId, setups } from "./setups.js";

/** What is trained. */
export const taskNames = ["moons", "digits", "text"] as const;

/** One of them. */
export type TaskName = (typeof taskNames)[number];

/** What they are called. */
export const taskLabels: Readonly<Record<TaskName, string>> = {
  moons: "Two moons",
  digits: "Handwritten digits",
  text: "A GPT that writes",
};

/** A training run: the same configuration gives the same numbers. */
export interface TrainConfig {
  readonly task: TaskName;
  /** At most four, trained side by side. */
  readonly setups: readonly SetupId[];
  readonly lr: number;
  /** The loss is multiplied by 2 to the power of minus this, as a loss of many parts might be. */
  readonly shrink: number;
  /** Inputs are multiplied by 2 to the power of this, as data without normalisation. */
  readonly gain: number;
  /** log₂ of the first loss scale, and of a fixed one. */
  readonly scale: number;
  readonly seed: number;
  /** Where to compute: on the GPU if there is one, or on the CPU in any case. */
  readonly compute: "auto" | "cpu";
}

/** Steps after which a run pauses for good. */
export const mostSteps = 500;

/** Most setups at once: as many as lines can be told apart. */
export const mostSetups = 4;

const setupsField: Field<readonly SetupId[]> = {
  initial: ["float32", "float16", "bfloat16"],
  read: (text) => {
    const ids = new Set(text.split("."));
    const known = setups.filter(({ id }) => ids.has(id)).map(({ id }) => id);
    return known.length === ids.size && ids.size <= mostSetups ? known : undefined;
  },
  write: (ids) => ids.join("."),
};

/** How the address writes a configuration. */
export const configFields: Fields<TrainConfig> = {
  task: wordField<TaskName>("moons", taskNames),
  setups: setupsField,
  lr: numberField(0.01, 1e-7, 1),
  shrink: integerField(0, 0, 30),
  gain: integerField(0, 0, 30),
  scale: integerField(16, 0, 40),
  seed: integerField(0, 0, 9999),
  compute: wordField("auto", ["auto", "cpu"]),
};

/** What the address of the page holds: a run, and the lane of which something is taken along. */
export interface TrainState extends TrainConfig {
  readonly lane: SetupId;
}

/** How the address writes it. */
export const trainFields: Fields<TrainState> = {
  ...configFields,
  lane: wordField<SetupId>(
    "float32",
    setups.map(({ id }) => id),
  ),
};

/** A configuration in which something fails, beside one in which it does not. */
export interface Preset {
  readonly id: string;
  readonly label: string;
  readonly config: Omit<TrainConfig, "seed" | "compute">;
  /** What to look for. */
  readonly text: string;
}

const usual = { lr: 0.01, shrink: 0, gain: 0, scale: 16 } as const;

/** In an order in which each needs only what the ones before it showed. */
export const presets: readonly Preset[] = [
  {
    id: "together",
    label: "All is well",
    config: { ...usual, task: "moons", setups: ["float32", "float16", "bfloat16"] },
    text: "Three precisions learn the same thing from the same seed. Their curves lie on top of each other: that is the point of mixed precision.",
  },
  {
    id: "underflow",
    label: "Gradients vanish",
    config: {
      ...usual,
      task: "moons",
      shrink: 18,
      setups: ["float32", "float16", "float16-unscaled"],
    },
    text: "The loss is 2¹⁸ times smaller, and so is every gradient. Without a scale float16 rounds them to 0, and nothing is learned. The loss scale lifts them out of there.",
  },
  {
    id: "overflow",
    label: "The scale is too large",
    config: { ...usual, task: "moons", scale: 32, setups: ["float32", "float16", "float16-fixed"] },
    text: "A scale of 2³² makes gradients infinite, and steps with infinite gradients are skipped. A fixed scale skips all of them. A dynamic one halves until they fit.",
  },
  {
    id: "masters",
    label: "Steps are too small",
    config: {
      ...usual,
      task: "digits",
      lr: 2e-5,
      setups: ["float32", "bfloat16", "bfloat16-plain"],
    },
    text: "With a learning rate of 0.00002 most updates are far below the distance between two bfloat16 numbers. Weights in bfloat16 alone lose most of them, and hardly learn. float32 masters collect them all.",
  },
  {
    id: "origin",
    label: "What was infinite first?",
    config: {
      ...usual,
      task: "moons",
      gain: 20,
      lr: 0.001,
      setups: ["float32", "float16", "bfloat16"],
    },
    text: "Nobody normalised the inputs: they are a million times too large. float16 has no number for them. The search after a skipped step names the first result that was not finite.",
  },
];
