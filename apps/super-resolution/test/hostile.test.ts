// Checkpoints that others made: layers that are missing, of the wrong type, negative, huge. All are refused in one line that names the
// checkpoint, and none makes a network beyond its weights.
import { cpuRuntime } from "@halfstep/tensor";
import { exitCodeOf } from "@halfstep/trainer/cli";
import { hostileTrees, hostileValues, opening } from "@halfstep/vitest/hostile";
import { expect, it } from "vitest";
import { LayersModel } from "../src/keras/layers-model.js";
import { readTopology } from "../src/keras/topology.js";
import { modelIn, savedLayers } from "../src/saved-model.js";

type Json = Readonly<Record<string, unknown>>;

const runtime = cpuRuntime();
const layers = [
  {
    ...{ class_name: "InputLayer", name: "image", inbound_nodes: [] },
    config: { batch_input_shape: [null, null, null, 3] },
  },
  {
    ...{ class_name: "Conv2D", name: "mix", inbound_nodes: [[["image", 0, 0, {}]]] },
    config: {
      ...{ filters: 3, kernel_size: [1, 1], strides: [1, 1], padding: "same", groups: 1 },
      ...{ data_format: "channels_last", dilation_rate: [1, 1], activation: "linear" },
    },
  },
];
const config = { layers, input_layers: [["image", 0, 0]], output_layers: [["mix", 0, 0]] };
const topology = readTopology({ modelTopology: { model_config: { config } } }, "model.json");

it("a network with a layer that nobody meant is refused, or opens where it changes nothing", async () => {
  const network = new LayersModel(runtime, topology);
  const model = await network.stateDict();
  const saved = (await savedLayers(network).stateDict()) as Json;
  const opens = (parts: Json): Promise<string> =>
    opening(
      async () => modelIn(runtime, { path: "step-1", step: 1, microStep: 0, best: false, parts }),
      exitCodeOf,
    );
  expect(await opens({ model, layers: saved })).toBe("opened");
  const nested = (each: object): Json => ({ modelTopology: { model_config: { config: each } } });
  for (const { field, kind, config: other } of hostileTrees(config)) {
    const said = await opens({ model, layers: nested(other) });
    if (said !== "opened") expect(said, `${field} ${kind}`).toMatch(/^step-1[ ,]/);
  }
  const [, mix] = layers as [object, { readonly config: object }];
  const changed = (changes: object): Json =>
    nested({ ...config, layers: [layers[0], { ...mix, config: { ...mix.config, ...changes } }] });
  expect(await opens({ model, layers: changed({ filters: 1e9 }) })).toMatch(
    /^step-1, layers: describes a layers model of 4000000000 parameters, and its weights have 12/,
  );
  expect(await opens({ model, layers: changed({ kernel_size: [3, 3] }) })).toMatch(/^step-1[ ,]/);
  expect(await opens({ model, layers: changed({ use_bias: false }) })).toMatch(/^step-1[ ,]/);
  for (const value of Object.values(hostileValues)) {
    expect(await opens({ model, layers: value })).toMatch(/^step-1[ ,]/);
    expect(await opens({ model: value, layers: saved })).toMatch(/^step-1[ ,]/);
  }
});
