// Checkpoints that others made: every field of what is known of a network, missing, null, of the wrong type, negative, huge. All are
// refused in one line that names the checkpoint, and none makes a network beyond its weights.
import { cpuRuntime } from "@halfstep/tensor";
import { exitCodeOf } from "@halfstep/trainer/cli";
import { hostileTrees, hostileValues, opening } from "@halfstep/vitest/hostile";
import { expect, it } from "vitest";
import { makeUNet, type Segmenter, savedSegmenter, segmenterIn } from "../src/saved-model.js";

type Json = Readonly<Record<string, unknown>>;

const runtime = cpuRuntime();
const segmenter: Segmenter = {
  ...{ channels: 1, classes: ["ground", "digit"], maskValues: [0, 1], maskKind: "palette" },
  palette: [
    [0, 0, 0],
    [255, 0, 0],
  ],
  ...{ scale: 1, width: 2, bilinear: true, tile: 16, precision: "float16" },
  encoding: "linear",
};

it("a network with a field that nobody meant is refused, or opens where it changes nothing", async () => {
  const model = await makeUNet(runtime, segmenter, 1).stateDict();
  const saved = (await savedSegmenter(segmenter).stateDict()) as Json;
  const opens = (parts: Json): Promise<string> =>
    opening(
      () => segmenterIn(runtime, { path: "step-1", step: 1, microStep: 0, best: false, parts }),
      exitCodeOf,
    );
  expect(await opens({ model, segmenter: saved })).toBe("opened");
  const meant =
    /^((maskKind|encoding) (missing|null)|palette (missing|null|an empty list)|bilinear true|(scale|tile) .*)$/;
  for (const { field, kind, config } of hostileTrees(saved)) {
    const said = await opens({ model, segmenter: config });
    if (said === "opened") expect(`${field} ${kind}`).toMatch(meant);
    else expect(said, `${field} ${kind}`).toMatch(/^step-1[ ,]/);
  }
  for (const [field, value] of [
    ["maskValues", [0, 1e9]],
    ["maskValues", [0, 0.5]],
    ["classes", ["ground", 1]],
    ["palette", [[0, 0, 256]]],
    ["channels", 2],
  ] as const)
    expect(await opens({ model, segmenter: { ...saved, [field]: value } })).toMatch(/^step-1, seg/);
  for (const value of Object.values(hostileValues)) {
    expect(await opens({ model, segmenter: value })).toMatch(/^step-1[ ,]/);
    expect(await opens({ model: value, segmenter: saved })).toMatch(/^step-1[ ,]/);
  }
});
