import type { Recipe } from "@halfstep/autocast";
import { OnnxError } from "../errors.js";
import { requireKnown } from "../known-options.js";
import type { ExternalSink } from "./external-writer.js";
import { opsets } from "./graph-builder.js";
import { type NamedTensor, namedTensors } from "./tensors-in.js";

/** Options of `toOnnx()`. */
export interface OnnxOptions {
  /** The version of the operators, 17 to 21. Default 17. */
  readonly opset?: number;
  /**
   * The recipe under which `forward` runs: the casts of a recipe that casts op by op (`recipeOf("O1")`). A recipe that stores or casts the
   * whole model is applied by `applyRecipe()` before.
   */
  readonly recipe?: Recipe;
  /** Names of the inputs, in the order of the tensors in the example. Default: the names of members, or "input". */
  readonly inputNames?: readonly string[];
  /** Names of the results. Default: the names of members, or "output". */
  readonly outputNames?: readonly string[];
  /**
   * Names of the axes whose sizes may change, by input and dimension. Axes of one name have one size. Default: the first of every input is
   * "batch".
   */
  readonly axes?: Readonly<Record<string, Readonly<Record<number, string>>>>;
  /**
   * Whether floating-point results are float32 where the model returns halves, which JavaScript may have no array for. Default false.
   */
  readonly float32Outputs?: boolean;
  /** Numbers of which the sizes of axes are multiples, by the axis' name: a U-Net halves four times, `{ height: 16, width: 16 }`. Default 1. */
  readonly multiples?: Readonly<Record<string, number>>;
  /** Inputs and results [batch, height, width, channels] that the graph has as [batch, channels, height, width]. Default: none. */
  readonly channelsFirst?: readonly string[];
  /**
   * A file beside the model that takes the weights of 1 KiB and more, one after the other. Models of more than 2 GiB need it. Default: all lie
   * in the model.
   */
  readonly external?: ExternalSink | undefined;
}

const onnxOptions: readonly (keyof OnnxOptions)[] = [
  ...(["opset", "recipe", "inputNames", "outputNames", "axes", "float32Outputs"] as const),
  ...(["multiples", "channelsFirst", "external"] as const),
];

/**
 * @throws TypeError for an option that is unknown or of another kind
 * @throws OnnxError for a version or a recipe that is not written
 */
export function requireOnnxOptions(inputs: readonly unknown[], options: OnnxOptions): void {
  if (!Array.isArray(inputs))
    throw new TypeError("toOnnx: inputs is no list: pass what forward takes, as in [x]");
  requireKnown("toOnnx", options, onnxOptions);
  const { opset = 17, recipe, float32Outputs = false } = options;
  if (!opsets.includes(opset))
    throw new OnnxError(
      "unsupported",
      `opset ${opset} is not written: choose one of ${opsets.join(", ")}`,
    );
  for (const member of ["inputNames", "outputNames", "channelsFirst"] as const)
    if (options[member] !== undefined && !isNames(options[member]))
      throw new TypeError(`toOnnx: ${member} is no list of names`);
  if (typeof float32Outputs !== "boolean")
    throw new TypeError(`toOnnx: float32Outputs is ${String(float32Outputs)}: pass true or false`);
  if (recipe !== undefined && typeof recipe !== "object")
    throw new TypeError(`toOnnx: recipe is ${String(recipe)}: pass recipeOf("O1")`);
  if (recipe?.casting === "whole" && recipe.compute !== "float32")
    throw new OnnxError(
      "unsupported",
      "the recipe casts the whole model: call applyRecipe(model, recipe), and write the model without the option recipe",
    );
}

const isNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((name) => typeof name === "string" && name !== "");

/** What options say of dimensions. @throws OnnxError where they name an input, a dimension or an axis that there is not */
export function requireAxes(
  inputs: readonly unknown[],
  names: readonly string[],
  { axes = {}, multiples = {} }: OnnxOptions,
  sizes: ReadonlyMap<string, number>,
): void {
  const tensors = namedTensors(inputs);
  for (const [input, named] of Object.entries(axes)) {
    const tensor = tensors[names.indexOf(input)];
    if (!tensor) throw unknownName("axes", input, "inputs", names);
    for (const [dimension, name] of Object.entries(named))
      requireDimension(tensor, input, dimension, name);
  }
  for (const [name, step] of Object.entries(multiples)) {
    const size = sizes.get(name);
    if (size === undefined) throw unknownName("multiples", name, "named axes", [...sizes.keys()]);
    if (!(Number.isInteger(step) && step > 0 && size % step === 0))
      throw new OnnxError(
        "inputs",
        `axis "${name}" has the size ${size} in the example, which is no multiple of ${step}`,
      );
  }
}

function requireDimension(
  { tensor }: NamedTensor,
  input: string,
  dimension: string,
  name: unknown,
): void {
  if (!(Number(dimension) >= 0 && Number(dimension) < tensor.rank))
    throw new OnnxError(
      "inputs",
      `axes names dimension ${dimension} of "${input}", which is [${tensor.shape}]`,
    );
  if (typeof name !== "string" || name === "")
    throw new TypeError(`toOnnx: axes has no name for dimension ${dimension} of "${input}"`);
}

/** @throws OnnxError where channelsFirst names none of the tensors, or one that has no four dimensions */
export function requireImages(
  { channelsFirst = [] }: OnnxOptions,
  ranks: ReadonlyMap<string, number>,
): void {
  for (const name of channelsFirst) {
    const rank = ranks.get(name);
    if (rank === undefined)
      throw unknownName("channelsFirst", name, "inputs and results", [...ranks.keys()]);
    if (rank !== 4)
      throw new OnnxError(
        "inputs",
        `channelsFirst names "${name}", which has ${rank} dimensions and not [batch, height, width, channels]`,
      );
  }
}

const unknownName = (
  option: string,
  name: string,
  kind: string,
  known: readonly string[],
): OnnxError =>
  new OnnxError(
    "inputs",
    `${option} names "${name}", and the ${kind} are ${known.join(", ") || "none"}`,
  );
