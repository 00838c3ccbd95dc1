import { readFileSync } from "node:fs";
import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, Generator, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { loadTorchStateDict, torchStateDict } from "../torch-layout.js";
import { GRU, type GRUResult, LSTM, type LSTMResult } from "./recurrent.js";
import { GRUCell, LSTMCell } from "./recurrent-cells.js";

interface Listed {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** A layer of torch's with its results and gradients: see test/golden/recurrent.py. */
interface Golden {
  readonly kind: "LSTM" | "GRU";
  readonly options: Readonly<Record<string, number | boolean>>;
  readonly x: Listed;
  readonly states: readonly [Listed, Listed?];
  readonly parameters: Readonly<Record<string, Listed>>;
  readonly results: readonly Listed[];
  readonly gradients: Readonly<Record<string, Listed>>;
}

const golden = JSON.parse(
  readFileSync(new URL("../../test/golden/recurrent.json", import.meta.url), "utf8"),
) as readonly Golden[];

const generator = new Generator(1);
const cosines = (size: number): Float32Array =>
  Float32Array.from({ length: size }, (_, i) => Math.cos(i * 0.7));

/** The layer of a case, with torch's parameters. */
function layerOf(runtime: Runtime, { kind, options, parameters, x }: Golden): LSTM | GRU {
  const { num_layers: numLayers = 1, bias = true, batch_first: batchFirst = false } = options;
  const { bidirectional = false } = options;
  const hidden = parameters.weight_hh_l0?.shape[1] as number;
  const Layer = kind === "LSTM" ? LSTM : GRU;
  const layer = new Layer(runtime, x.shape[2] as number, hidden, {
    numLayers,
    bias,
    batchFirst,
    bidirectional,
    generator,
  } as ConstructorParameters<typeof LSTM>[3]);
  const state = Object.entries(parameters).map(([name, { shape, values }]) => [
    name,
    { shape, dtype: "float32" as const, data: Float32Array.from(values) },
  ]);
  loadTorchStateDict(layer, Object.fromEntries(state));
  return layer;
}

/** Results and gradients of a case by name, next to torch's. */
async function compared(runtime: Runtime, one: Golden, isHalf = false) {
  const layer = layerOf(runtime, one);
  const leaf = ({ values, shape }: Listed, name: string) =>
    runtime.variable(values, shape, { requiresGrad: true, name });
  const [h, c] = one.states;
  const inputs = {
    x: leaf(one.x, "x"),
    hidden: leaf(h, "hidden"),
    ...(c && { cell: leaf(c, "cell") }),
  };
  const results = await runtime.step(() => {
    const call = () => layer.forward(inputs.x, { hidden: inputs.hidden, cell: inputs.cell });
    const made: Partial<LSTMResult> & GRUResult = isHalf
      ? autocast({ dtype: "float16" }, call)
      : call();
    const all = [made.output, made.hidden, made.cell].filter((each) => each !== undefined);
    all
      .map((each) =>
        each
          .to("float32")
          .mul(runtime.tensor(cosines(each.size), each.shape))
          .sum(),
      )
      .reduce((a, b) => a.add(b))
      .backward();
    return all;
  });
  const named: [string, Tensor, Listed][] = results.map((each, i) => [
    `result ${i}`,
    each,
    one.results[i] as Listed,
  ]);
  const names = new Map([...layer.namedVariables()].map(([name, variable]) => [variable, name]));
  const snake = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
  for (const variable of [...Object.values(inputs), ...layer.parameters()]) {
    const name = snake(names.get(variable) ?? variable.name);
    named.push([name, variable.grad as Tensor, one.gradients[name] as Listed]);
  }
  return Promise.all(
    named.map(async ([name, tensor, expected]) => {
      expect(tensor.shape, name).toEqual(expected.shape);
      const values = await tensor.toArray();
      const size = Math.max(...expected.values.map(Math.abs));
      const worst = Math.max(...expected.values.map((v, i) => Math.abs(v - (values[i] as number))));
      return { name, dtype: tensor.dtype, error: worst / size };
    }),
  );
}

test("a layer has every parameter of torch's under its name", async () => {
  for (const one of golden)
    expect(Object.keys(await torchStateDict(layerOf(cpuRuntime(), one))).sort()).toEqual(
      Object.keys(one.parameters).sort(),
    );
});

const titled = golden.map((one) => [`${one.kind} ${JSON.stringify(one.options)}`, one] as const);

test.each(titled)("values and gradients are torch's: %s", async (_, one) => {
  const wide = await compared(cpuRuntime({ arithmetic: "float64" }), one);
  expect(wide.filter(({ error }) => !(error < 1e-7))).toEqual([]);
  const single = await compared(cpuRuntime(), one);
  expect(single.filter(({ error }) => !(error < 2e-6))).toEqual([]);
});

test("in float16 they run in halves, and stay near torch's, on every tier", async () => {
  const runtimes = [
    cpuRuntime(),
    gpuRuntime(await requestTestDevice()),
    gpuRuntime(await requestTestDevice({ tier: "packed" })),
  ];
  for (const runtime of runtimes)
    for (const one of [golden[0], golden[3]] as Golden[]) {
      const lines = await compared(runtime, one, true);
      expect(lines.filter(({ error }) => !(error < 4e-3))).toEqual([]);
      expect(
        lines.filter(({ name, dtype }) => name.startsWith("result") && dtype !== "float16"),
      ).toEqual([]);
    }
});

test("ten lengths compile once, and a time step is four launches, there and back", async () => {
  const runtime = gpuRuntime(await requestTestDevice());
  for (const layer of [
    new LSTM(runtime, 4, 8, { generator }),
    new GRU(runtime, 4, 8, { generator }),
  ]) {
    const compiled: number[] = [];
    const launches: number[] = [];
    // The product of all inputs has other tiles below 17 rows, which are length · batch.
    for (let length = 5; length < 15; length++) {
      const seen = new Set<string>();
      await runtime.step(
        () => {
          const { output } = layer.forward(runtime.zeros([length, 4, 4]));
          output.square().sum().backward();
          for (const variable of layer.parameters()) variable.zeroGrad();
        },
        { onCompile: ({ kernel, compiled: count }) => seen.add(`${count} ${kernel}`) },
      );
      compiled.push(seen.size);
      launches.push(runtime.lastPlan?.launches.length as number);
    }
    expect(compiled[0]).toBeGreaterThan(0);
    expect(compiled.slice(1)).toEqual(Array(9).fill(0));
    const more = launches.slice(2).map((count, i) => count - (launches[i + 1] as number));
    expect(more).toEqual(Array(8).fill(4));
  }
});

test.each(["LSTM", "GRU"] as const)(
  "three units saturate at an infinite input, as at a large one: %s",
  async (kind) => {
    const one = golden.find((each) => each.kind === kind && each.options.num_layers) as Golden;
    const runtime = cpuRuntime();
    const layer = layerOf(runtime, one);
    const resultsOf = async (large: number) => {
      const values = one.x.values.map((v, i) => (i === 1 ? large : v));
      const x = runtime.variable(values, one.x.shape, { requiresGrad: true });
      const { output } = layer.forward(x);
      output
        .mul(runtime.tensor(cosines(output.size), output.shape))
        .sum()
        .backward();
      return Promise.all(
        [output, x.grad as Tensor].map(async (each) => [...(await each.toArray())]),
      );
    };
    const infinite = await resultsOf(Number.POSITIVE_INFINITY);
    expect(infinite).toEqual(await resultsOf(1e30));
    expect(infinite.flat().filter((v) => !Number.isFinite(v))).toEqual([]);
  },
);

test("a cell is a layer of one step", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, -1, 0.5, 2, 0, 1], [2, 3]);
  const lstm = new LSTMCell(runtime, 3, 5, { generator });
  const gru = new GRUCell(runtime, 3, 5, { generator, bias: false });
  const first = lstm.forward(x);
  const second = lstm.forward(x, first);
  expect([second.hidden.shape, second.cell.shape]).toEqual(Array(2).fill([2, 5]));
  const layer = new LSTM(runtime, 3, 5, { generator });
  const cellState = await torchStateDict(lstm);
  loadTorchStateDict(
    layer,
    Object.fromEntries(Object.entries(cellState).map(([name, saved]) => [`${name}_l0`, saved])),
  );
  const { hidden } = layer.forward(x.unsqueeze(0).expand([2, 2, 3]));
  expect(await second.hidden.toArray()).toEqual(await hidden.toArray());
  expect(gru.forward(x, gru.forward(x)).shape).toEqual([2, 5]);
  const one = layer.forward(x, { hidden: runtime.zeros([1, 5]) });
  expect([one.output, one.hidden, one.cell].map(({ shape }) => shape)).toEqual([
    [2, 5],
    [1, 5],
    [1, 5],
  ]);
  const alone = layer.forward(x.unsqueeze(1));
  expect(await one.output.toArray()).toEqual(await alone.output.toArray());
  expect(lstm.forward(x.select(0, 0)).cell.shape).toEqual([5]);
  expect(gru.forward(x.select(0, 0)).shape).toEqual([5]);
  expect(() => layer.forward(x.select(0, 0))).toThrow("LSTM needs an input [length, batch, 3]");
});

test("states are named, in one shape: torch's tuple and tensor are refused, not left out", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor(cosines(12), [2, 2, 3]);
  const states = runtime.tensor(cosines(8), [1, 2, 4]);
  const [layer, gates] = [
    new LSTM(runtime, 3, 4, { generator }),
    new GRU(runtime, 3, 4, { generator }),
  ];
  const cell = new LSTMCell(runtime, 3, 4, { generator });
  const tuple = [states, states] as object;
  expect(() => layer.forward(x, tuple)).toThrow(
    "LSTM: the states before the first step are an object: pass { hidden: h0, cell: c0 }",
  );
  expect(() => cell.forward(x.select(0, 0), tuple)).toThrow("LSTMCell: the states");
  expect(() => gates.forward(x, states as object)).toThrow(
    "GRU: the states before the first step are an object: pass { hidden: h0 }",
  );
  expect(() => layer.forward(x, { h0: states } as object)).toThrow(TypeError);
  expect(() => layer.forward(x, { hidden: states.select(0, 0) })).toThrow(
    "LSTM: states are [layers · directions, batch, hiddenSize] = [1,2,4], not [2,4]",
  );
  // The result of a call is the state of the next.
  const halves = x.split(1);
  const first = layer.forward(halves[0] as Tensor);
  const second = layer.forward(halves[1] as Tensor, first);
  const whole = layer.forward(x);
  expect(await second.hidden.toArray()).toEqual(await whole.hidden.toArray());
});
