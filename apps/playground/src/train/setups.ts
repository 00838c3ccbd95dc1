import { type Recipe, recipeOf } from "@halfstep/autocast";
import type { GradScalerOptions } from "@halfstep/grad-scaler";
import type { ParameterStorage } from "@halfstep/optim";

/** A precision to train in, with what protects it or does not. */
export interface Setup {
  readonly id: SetupId;
  readonly label: string;
  /** One sentence for people who meet it for the first time. */
  readonly about: string;
  readonly recipe: Recipe;
  readonly storage: ParameterStorage;
  readonly scaling: "dynamic" | "fixed" | "off";
}

/** The names of setups in the address. */
export type SetupId =
  | "float32"
  | "float16"
  | "float16-fixed"
  | "float16-unscaled"
  | "bfloat16"
  | "bfloat16-plain";

/** All setups, the safest first. */
export const setups: readonly Setup[] = [
  {
    id: "float32",
    label: "float32",
    about: "Everything in 32 bits: the reference.",
    recipe: recipeOf("float32"),
    storage: "float32",
    scaling: "off",
  },
  {
    id: "float16",
    label: "float16, scaled",
    about:
      "Mixed precision: products in float16, weights in float32, and a loss scale that adapts.",
    recipe: recipeOf("float16"),
    storage: "float32",
    scaling: "dynamic",
  },
  {
    id: "bfloat16",
    label: "bfloat16",
    about: "Mixed precision: products in bfloat16, weights in float32. Its range needs no scale.",
    recipe: recipeOf("bfloat16"),
    storage: "float32",
    scaling: "off",
  },
  {
    id: "float16-fixed",
    label: "float16, fixed scale",
    about: "Mixed precision in float16 with a loss scale that never moves.",
    recipe: recipeOf("float16"),
    storage: "float32",
    scaling: "fixed",
  },
  {
    id: "float16-unscaled",
    label: "float16, unscaled",
    about: "Mixed precision in float16 without a loss scale: small gradients become 0.",
    recipe: recipeOf("float16"),
    storage: "float32",
    scaling: "off",
  },
  {
    id: "bfloat16-plain",
    label: "bfloat16, no masters",
    about: "Weights are bfloat16, too, and nothing keeps what rounding cuts off.",
    recipe: recipeOf({
      extends: "bfloat16",
      name: "bfloat16 without masters",
      params: "bfloat16",
    }),
    storage: "plain",
    scaling: "off",
  },
];

/** The setup of a name. */
export const setupOf = (id: SetupId): Setup => setups.find((setup) => setup.id === id) as Setup;

/** The options of the scaler of a setup. `initScale` is where a scale begins, or stays. */
export function scalerOptionsOf({ scaling }: Setup, initScale: number): GradScalerOptions {
  // The page reads outcomes itself, as often as it draws.
  const outcomeSchedule = false;
  if (scaling === "off") return { enabled: false };
  if (scaling === "fixed") return { preset: "static", initScale, outcomeSchedule };
  return { initScale, growthInterval: 200, outcomeSchedule };
}
