import { DataError } from "@halfstep/data";

/** What a layer computes from earlier ones, which it names in `inputs`. */
export type LayerSpec = { readonly name: string; readonly inputs: readonly string[] } & (
  | { readonly type: "input"; readonly channels: number }
  | {
      readonly type: "conv2d";
      readonly filters: number;
      readonly kernelSize: readonly [height: number, width: number];
      /** Zeros around, so that sizes stay; else none. */
      readonly same: boolean;
      readonly bias: boolean;
      readonly relu: boolean;
    }
  | { readonly type: "relu" }
  | { readonly type: "add" }
  /** Of channels. */
  | { readonly type: "concatenate" }
  /** Nearest neighbours. */
  | { readonly type: "upsample"; readonly scale: number }
);

/** A network from one image to another. */
export interface Topology {
  /** Each after those that it needs. */
  readonly layers: readonly LayerSpec[];
  readonly input: string;
  readonly output: string;
  /** The JSON that it was read from, without weights. */
  readonly json: unknown;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * The layers of a Keras functional model (`modelTopology` of a layers-model JSON). Of what Keras has, it knows what fully
 * convolutional networks from image to image are made of, channels last: Conv2D with stride 1, ReLU, Add, Concatenate, nearest
 * UpSampling2D.
 *
 * @param source how errors name the file
 * @throws DataError that names the layer and what is not supported about it
 */
export function readTopology(model: unknown, source: string): Topology {
  const refuse = (problem: string): never => {
    throw new DataError(source, inOneLine(problem));
  };
  const config = at(model, "modelTopology", "model_config", "config");
  if (config === undefined || !Array.isArray(config.layers))
    return refuse("is no Keras layers model: it has no modelTopology.model_config.config.layers");
  const layers: LayerSpec[] = [];
  for (const layer of config.layers as readonly unknown[]) {
    const spec = readLayer(layer, refuse);
    if (layers.some(({ name }) => name === spec.name)) refuse(`has two layers called ${spec.name}`);
    const early = spec.inputs.find((name) => !layers.some((known) => known.name === name));
    if (early !== undefined) refuse(`layer ${spec.name} needs ${early}, which is not before it`);
    layers.push(spec);
  }
  const only = (key: string): string => {
    const list = config[key];
    const name = Array.isArray(list) && list.length === 1 ? first(list[0]) : undefined;
    return layers.some((layer) => layer.name === name)
      ? (name as string)
      : refuse(`needs ${key} with one layer, as in [["${layers.at(-1)?.name}", 0, 0]]`);
  };
  const json = { modelTopology: { model_config: { config } } };
  return { layers, input: only("input_layers"), output: only("output_layers"), json };
}

/** The most of a problem that quotes a file. */
const longestProblem = 400;

/** A problem that quotes a file, whose names may be long and have several lines. */
function inOneLine(problem: string): string {
  const line = problem.replace(/\s+/g, " ");
  return line.length > longestProblem ? `${line.slice(0, longestProblem)}…` : line;
}

function readLayer(layer: unknown, refuse: (problem: string) => never): LayerSpec {
  const { class_name: type, config: settings, name } = (layer ?? {}) as Json;
  if (typeof name !== "string" || typeof type !== "string" || !isObject(settings))
    return refuse("has a layer without name, class_name or config");
  const unsupported = (key: string): never =>
    refuse(
      `layer ${name} (${type}) has ${key} ${JSON.stringify(settings[key])}, which is not supported`,
    );
  const need = (key: string, isRight: (value: unknown) => boolean): void => {
    if (!isRight(settings[key])) unsupported(key);
  };
  const inputs = inputsOf(layer as Json, name, refuse);
  const takes = (isRight: boolean): void => {
    if (!isRight) refuse(`layer ${name} (${type}) has ${inputs.length} inputs`);
  };
  switch (type) {
    case "InputLayer": {
      takes(inputs.length === 0);
      const shape = settings.batch_input_shape;
      need("batch_input_shape", (value) => Array.isArray(value) && value.length === 4);
      const [, , , channels] = shape as readonly unknown[];
      if (!isCount(channels)) return unsupported("batch_input_shape");
      return { type: "input", name, inputs, channels };
    }
    case "Conv2D": {
      takes(inputs.length === 1);
      need("data_format", (value) => value === "channels_last");
      need("strides", isPairOfOnes);
      need("dilation_rate", isPairOfOnes);
      need("groups", (value) => value === 1 || value === undefined);
      need("filters", isCount);
      need("padding", (value) => value === "same" || value === "valid");
      need("activation", (value) => value === "linear" || value === "relu");
      need("kernel_size", (value) => Array.isArray(value) && value.length === 2);
      const size = settings.kernel_size as [number, number];
      const same = settings.padding === "same";
      // An even kernel has more zeros on one side than on the other.
      if (!size.every((side) => isCount(side) && (!same || side % 2 === 1)))
        unsupported("kernel_size");
      return {
        ...{ type: "conv2d", name, inputs, same },
        kernelSize: size,
        filters: settings.filters as number,
        bias: settings.use_bias !== false,
        relu: settings.activation === "relu",
      };
    }
    case "Activation":
      takes(inputs.length === 1);
      need("activation", (value) => value === "relu");
      return { type: "relu", name, inputs };
    case "Add":
      takes(inputs.length >= 2);
      return { type: "add", name, inputs };
    case "Concatenate":
      takes(inputs.length >= 2);
      need("axis", (value) => value === 3 || value === -1);
      return { type: "concatenate", name, inputs };
    case "UpSampling2D": {
      takes(inputs.length === 1);
      need("data_format", (value) => value === "channels_last");
      need("interpolation", (value) => value === "nearest");
      need("size", (value) => Array.isArray(value) && isCount(value[0]) && value[0] === value[1]);
      return { type: "upsample", name, inputs, scale: (settings.size as [number])[0] };
    }
    default:
      return refuse(
        `layer ${name} is a ${type}; supported are InputLayer, Conv2D, Activation, Add, Concatenate and UpSampling2D`,
      );
  }
}

/** The layers that a layer takes its inputs from: `[[["F_0", 0, 0, {}], …]]`. */
function inputsOf(
  { inbound_nodes: nodes }: Json,
  name: string,
  refuse: (problem: string) => never,
): readonly string[] {
  if (!Array.isArray(nodes) || nodes.length > 1)
    return refuse(`layer ${name} is used more than once, or has no inbound_nodes`);
  const [node = []] = nodes;
  const names = Array.isArray(node) ? node.map(first) : [undefined];
  return names.every((each) => each !== undefined)
    ? names
    : refuse(`layer ${name} has inbound_nodes that name no layers`);
}

const first = (list: unknown): string | undefined =>
  Array.isArray(list) && typeof list[0] === "string" ? list[0] : undefined;

function at(value: unknown, ...path: readonly string[]): Json | undefined {
  let found = value;
  for (const key of path) found = isObject(found) ? found[key] : undefined;
  return isObject(found) ? found : undefined;
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 1;

const isPairOfOnes = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && value.every((each) => each === 1);
