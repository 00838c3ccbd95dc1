import { autocast, recipeOf } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { applyRecipe, Generator, type SavedTensor } from "@halfstep/nn";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { CRF } from "./index.js";

/** What the definition says of one sequence, by going through all its tags in float64. */
interface Enumerated {
  readonly logPartition: number;
  readonly best: readonly number[];
  readonly bestScore: number;
  readonly scoreOf: (tags: readonly number[]) => number;
  /** Probability of each tag at each place: the gradient of the log-partition by the emissions. */
  readonly marginals: readonly (readonly number[])[];
}

interface Weights {
  readonly start: readonly number[];
  readonly end: readonly number[];
  readonly transitions: readonly (readonly number[])[];
}

function enumerate(emissions: readonly (readonly number[])[], weights: Weights): Enumerated {
  const { start, end, transitions } = weights;
  const tags = start.length;
  const scoreOf = (path: readonly number[]): number =>
    path.reduce(
      (sum, tag, i) =>
        sum +
        ((emissions[i] as number[])[tag] as number) +
        (i === 0 ? (start[tag] as number) : (transitions[path[i - 1] as number]?.[tag] as number)),
      end[path.at(-1) as number] as number,
    );
  const paths = Array.from({ length: tags ** emissions.length }, (_, n) =>
    emissions.map((_, i) => Math.floor(n / tags ** i) % tags),
  );
  const scores = paths.map(scoreOf);
  const bestScore = Math.max(...scores);
  const total = scores.reduce((sum, score) => sum + Math.exp(score - bestScore), 0);
  const logPartition = bestScore + Math.log(total);
  const marginals = emissions.map(() => new Array<number>(tags).fill(0));
  for (const [n, path] of paths.entries())
    for (const [i, tag] of path.entries())
      (marginals[i] as number[])[tag] =
        (marginals[i]?.[tag] as number) + Math.exp((scores[n] as number) - logPartition);
  const best = paths[scores.indexOf(bestScore)] as number[];
  return { logPartition, best, bestScore, scoreOf, marginals };
}

const [batch, length, numTags] = [5, 6, 3];
const ends = [6, 1, 4, 5, 2];

function setUp(runtime: Runtime) {
  const generator = new Generator(5);
  const crf = new CRF(runtime, numTags, { generator });
  const draw = (count: number, size: number): number[] =>
    Array.from({ length: count }, () => Math.fround(size * generator.normal()));
  const [start, end, transitions] = [draw(3, 1), draw(3, 1), draw(9, 1)] as const;
  const saved = (shape: readonly number[], data: readonly number[]): SavedTensor => ({
    shape,
    dtype: "float32",
    data: Float32Array.from(data),
  });
  crf.loadStateDict({
    startTransitions: saved([3], start),
    endTransitions: saved([3], end),
    transitions: saved([3, 3], transitions),
  });
  const values = draw(batch * length * numTags, 2);
  const tags = Array.from({ length: batch * length }, () => generator.uint32() % numTags);
  const rows = (data: readonly number[], width: number): number[][] =>
    Array.from({ length: data.length / width }, (_, i) =>
      Array.from({ length: width }, (_, j) => data[i * width + j] as number),
    );
  const weights: Weights = { start, end, transitions: rows(transitions, numTags) };
  const expected = ends.map((end, b) =>
    enumerate(
      rows(values.slice(b * length * numTags, (b * length + end) * numTags), numTags),
      weights,
    ),
  );
  const mask = Uint32Array.from({ length: batch * length }, (_, i) =>
    i % length < (ends[Math.floor(i / length)] as number) ? 1 : 0,
  );
  const tagsOf = (b: number): number[] => tags.slice(b * length, b * length + (ends[b] as number));
  return {
    crf,
    values,
    tags,
    expected,
    mask: runtime.tensor(mask, [batch, length]),
    isInside: (place: number): boolean => mask[place] === 1,
    losses: expected.map(({ logPartition, scoreOf }, b) => logPartition - scoreOf(tagsOf(b))),
    tagsOf,
  };
}

const runtimes: readonly [string, number, () => Promise<Runtime>][] = [
  ["CPU in float64", 1e-9, async () => cpuRuntime({ arithmetic: "float64" })],
  ["CPU", 1e-5, async () => cpuRuntime()],
  ["GPU", 1e-5, async () => gpuRuntime(await requestTestDevice())],
];

const worstOf = (actual: ArrayLike<number>, expected: readonly number[]): number =>
  Math.max(...expected.map((value, i) => Math.abs((actual[i] as number) - value)));

test.each(runtimes)(
  "losses, their gradients and the best tags are those of enumeration: %s",
  async (_, tolerance, open) => {
    const runtime = await open();
    const { crf, values, tags, expected, mask, isInside, losses, tagsOf } = setUp(runtime);
    // What lies under the padding is anything at all.
    const emissions = runtime.tensor(
      values.map((value, i) => (isInside(Math.floor(i / numTags)) ? value : Number.NaN)),
      [batch, length, numTags],
      { requiresGrad: true },
    );
    const names = runtime.tensor(
      Uint32Array.from(tags, (tag, i) => (isInside(i) ? tag : 0xffffffff)),
      [batch, length],
    );
    const each = crf.forward(emissions, names, { mask, reduction: "none" });
    each.sum().backward();
    expect(worstOf(await each.toArray(), losses)).toBeLessThan(tolerance);
    const mean = losses.reduce((a, b) => a + b) / batch;
    expect(worstOf(await crf.forward(emissions, names, { mask }).toArray(), [mean])).toBeLessThan(
      tolerance,
    );
    const gradient = expected.flatMap(({ marginals }, b) =>
      Array.from({ length: length * numTags }, (_, i) => {
        const [place, tag] = [Math.floor(i / numTags), i % numTags];
        const isGiven = tagsOf(b)[place] === tag ? 1 : 0;
        return (marginals[place]?.[tag] ?? 0) - isGiven;
      }),
    );
    const grad = (await emissions.grad?.toArray()) as Float32Array;
    expect(worstOf(grad, gradient)).toBeLessThan(tolerance);
    for (const [name, { grad }] of crf.namedParameters()) {
      const gradients = (await grad?.toArray()) ?? Float32Array.of(Number.NaN);
      const sum = [...gradients].reduce((a, b) => a + b);
      // As many transitions are expected as are given.
      expect(`${name} ${Math.abs(sum) < 1e-4}`).toBe(`${name} true`);
    }
    const decoded = crf.decode(emissions, { mask });
    const best = await decoded.tags.toArray();
    expect(ends.map((end, b) => [...best.slice(b * length, b * length + end)])).toEqual(
      expected.map((each) => each.best),
    );
    const bestScores = expected.map(({ bestScore }) => bestScore);
    expect(worstOf(await decoded.scores.toArray(), bestScores)).toBeLessThan(tolerance);
  },
);

test("without a mask every place counts, and one place is enough", async () => {
  const runtime = cpuRuntime({ arithmetic: "float64" });
  const { crf, values, tags } = setUp(runtime);
  for (const end of [length, 1]) {
    const take = <T>(all: readonly T[], width: number): T[] =>
      all.filter((_, i) => Math.floor(i / width) % length < end);
    const emissions = runtime.tensor(take(values, numTags), [batch, end, numTags]);
    const names = runtime.tensor(Uint32Array.from(take(tags, 1)), [batch, end]);
    const mask = runtime.tensor(new Uint32Array(batch * end).fill(1), [batch, end]);
    const [plain, masked] = [{}, { mask }].map((options) => crf.forward(emissions, names, options));
    expect(await (plain as Tensor).item()).toBe(await (masked as Tensor).item());
    const { tags: best } = crf.decode(emissions);
    expect(await best.toArray()).toEqual(await crf.decode(emissions, { mask }).tags.toArray());
  }
});

test("scores that float16 cannot hold are added up in float32, in every precision", async () => {
  const runtime = cpuRuntime();
  const [steps, size] = [70, 1000];
  const crf = new CRF(runtime, 2, { generator: new Generator(1) });
  const values = Float32Array.from({ length: steps * 2 }, (_, i) => (i % 2 === 0 ? size : 0));
  const exact = runtime.tensor(values, [1, steps, 2]);
  const emissions = exact.to("float16");
  const tags = runtime.tensor(new Uint32Array(steps), [1, steps]);
  const expected = await crf.decode(exact).scores.item();
  expect(expected).toBeGreaterThan(65_504);
  const found: unknown[] = [];
  const note = async (run: () => [Tensor, Tensor]): Promise<void> => {
    const [loss, scores] = run();
    const isZero = Math.abs(await loss.item()) < 1e-5;
    found.push([loss.dtype, isZero, scores.dtype, await scores.item()]);
  };
  const both = (): [Tensor, Tensor] => [crf.forward(emissions, tags), crf.decode(emissions).scores];
  await note(both);
  await note(() => autocast({ dtype: "float16" }, both));
  crf.half();
  expect(crf.transitions.dtype).toBe("float32");
  await note(both);
  applyRecipe(crf, recipeOf("O2"));
  await note(both);
  expect(found).toEqual(new Array(4).fill(["float32", true, "float32", expected]));
});

test("what does not fit is refused by name", () => {
  const runtime = cpuRuntime();
  const crf = new CRF(runtime, 3, { generator: new Generator(1) });
  const tags = runtime.tensor(new Uint32Array(4), [1, 4]);
  expect(() => crf.decode(runtime.zeros([1, 4, 2]))).toThrow("[batch, length, 3]");
  expect(() => crf.forward(runtime.zeros([1, 5, 3]), tags)).toThrow("tags [1,5], not [1,4]");
  expect(() => crf.decode(runtime.zeros([1, 4, 3]), { mask: runtime.zeros([1, 4]) })).toThrow(
    "uint32 mask",
  );
  expect(() => crf.forward(runtime.zeros([1, 4, 3]), runtime.zeros([1, 4]))).toThrow("Uint32Array");
  expect(() => crf.forward(runtime.zeros([1, 4, 3]), tags, { reduction: "avg" as "mean" })).toThrow(
    'reduction is "avg"; pass "mean", "sum" or "none"',
  );
});
