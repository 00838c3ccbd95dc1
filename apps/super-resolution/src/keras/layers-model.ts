import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DataError } from "@halfstep/data";
import { unreadable } from "@halfstep/data/node";
import { Conv2d, Generator, Module, type StateDict, zeros } from "@halfstep/nn";
import { cat, type Runtime, type Tensor, upsampleNearest2d } from "@halfstep/tensor";
import { type LayerSpec, readTopology, type Topology } from "./topology.js";
import { readWeights } from "./weights.js";

/** A network from image to image, as Keras describes it. Its convolutions are fields, by the names of their layers. */
export class LayersModel extends Module {
  readonly topology: Topology;
  readonly #convolutions: ReadonlyMap<string, Conv2d>;

  /**
   * All weights are zero until a state dict is loaded.
   * @throws DataError where the layers do not fit together
   */
  constructor(runtime: Runtime, topology: Topology) {
    super();
    this.topology = topology;
    const convolutions = new Map<string, Conv2d>();
    const channels = channelsOf(topology);
    for (const layer of topology.layers) {
      if (layer.type !== "conv2d") continue;
      if (layer.name in this)
        throw new DataError(layer.name, "cannot be the name of a layer: the model has it itself");
      const [input] = layer.inputs as [string];
      const [height, width] = layer.kernelSize;
      const convolution = new Conv2d(runtime, channels.get(input) as number, layer.filters, {
        kernelSize: [height, width],
        padding: layer.same ? [(height - 1) / 2, (width - 1) / 2] : 0,
        bias: layer.bias,
        generator: new Generator(0),
        weightInit: zeros,
        biasInit: zeros,
      });
      convolutions.set(layer.name, convolution);
      Object.assign(this, { [layer.name]: convolution });
    }
    this.#convolutions = convolutions;
  }

  /** Of the image that it takes. */
  get channels(): number {
    const input = this.topology.layers.find(({ type }) => type === "input");
    return input?.type === "input" ? input.channels : 0;
  }

  /** How many times as high and wide the result is. */
  get scale(): number {
    return reachOf(this.topology).scale;
  }

  /** The distance, in pixels of the input, within which neighbours influence the output of a pixel. */
  get radius(): number {
    return Math.ceil(reachOf(this.topology).radius);
  }

  /** @param image [batch, height, width, channels] */
  forward(image: Tensor): Tensor {
    const values = new Map<string, Tensor>();
    for (const layer of this.topology.layers) {
      const inputs = layer.inputs.map((name) => values.get(name) as Tensor);
      values.set(layer.name, this.#apply(layer, inputs, image));
    }
    return values.get(this.topology.output) as Tensor;
  }

  #apply(layer: LayerSpec, inputs: readonly Tensor[], image: Tensor): Tensor {
    const [x = image, ...others] = inputs;
    switch (layer.type) {
      case "input":
        return image;
      case "conv2d": {
        const y = (this.#convolutions.get(layer.name) as Conv2d).forward(x);
        return layer.relu ? y.relu() : y;
      }
      case "relu":
        return x.relu();
      case "add":
        return others.reduce((sum, other) => sum.add(other), x);
      case "concatenate":
        return cat(inputs, 3);
      case "upsample":
        return upsampleNearest2d(x, { scale: layer.scale });
    }
  }
}

/**
 * A Keras layers model, as tensorflow.js saves it: `model.json` and its files of weights.
 * @throws DataError where it cannot be read, has what is not supported, or lacks a weight
 */
export async function loadLayersModel(runtime: Runtime, path: string): Promise<LayersModel> {
  const read = (file: string): Promise<Uint8Array> =>
    readFile(file).catch((error: unknown) => {
      throw unreadable(file, error);
    });
  const json = parsed(new TextDecoder().decode(await read(path)), path);
  const topology = readTopology(json, path);
  const weights = await readWeights(json, path, (name) => read(join(dirname(path), name)));
  const state: StateDict = Object.fromEntries(
    [...weights].map(([name, { shape, data }]) => [
      name.replace(/\/kernel$/, ".weight").replace(/\/bias$/, ".bias"),
      { shape, data, dtype: "float32" as const },
    ]),
  );
  const model = new LayersModel(runtime, topology);
  try {
    model.loadStateDict(state);
  } catch (error) {
    throw new DataError(path, (error as Error).message);
  }
  return model;
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DataError(path, "is no JSON");
  }
}

/** Weights and biases of all layers. */
export function parameterCount(topology: Topology): number {
  const channels = channelsOf(topology);
  return topology.layers.reduce((sum, layer) => {
    if (layer.type !== "conv2d") return sum;
    const [height, width] = layer.kernelSize;
    const inputs = channels.get(layer.inputs[0] as string) as number;
    return sum + layer.filters * (height * width * inputs + (layer.bias ? 1 : 0));
  }, 0);
}

/** The channels of each layer's output. */
function channelsOf({ layers }: Topology): ReadonlyMap<string, number> {
  const channels = new Map<string, number>();
  for (const layer of layers) {
    const given = layer.inputs.map((name) => channels.get(name) as number);
    const [first = 0] = given;
    if (layer.type === "add" && given.some((count) => count !== first))
      throw new DataError(layer.name, `adds layers of ${given.join(" and ")} channels`);
    if (layer.type === "input") channels.set(layer.name, layer.channels);
    else if (layer.type === "conv2d") channels.set(layer.name, layer.filters);
    else if (layer.type === "concatenate")
      channels.set(
        layer.name,
        given.reduce((a, b) => a + b, 0),
      );
    else channels.set(layer.name, first);
  }
  return channels;
}

interface Reach {
  readonly scale: number;
  /** In pixels of the input. */
  readonly radius: number;
}

function reachOf({ layers, output }: Topology): Reach {
  const reaches = new Map<string, Reach>();
  for (const layer of layers) {
    const inputs = layer.inputs.map((name) => reaches.get(name) as Reach);
    const scale = inputs[0]?.scale ?? 1;
    const radius = Math.max(0, ...inputs.map((each) => each.radius));
    reaches.set(layer.name, {
      scale: layer.type === "upsample" ? scale * layer.scale : scale,
      radius:
        layer.type === "conv2d" ? radius + (Math.max(...layer.kernelSize) - 1) / 2 / scale : radius,
    });
  }
  return reaches.get(output) as Reach;
}
