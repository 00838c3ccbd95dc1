// Checkpoints that others made: every field of what is known of a network, missing, null, of the wrong type, negative, huge. All are
// refused in one line that names the checkpoint, and none makes a network beyond its weights.
import { cpuRuntime } from "@halfstep/tensor";
import { recipeFor } from "@halfstep/trainer";
import { exitCodeOf } from "@halfstep/trainer/cli";
import { hostileTrees, hostileValues, opening } from "@halfstep/vitest/hostile";
import { expect, it } from "vitest";
import { zoomOf } from "../src/data.js";
import { networkFor, networkOf } from "../src/model.js";
import { networkIn, savedNetwork } from "../src/saved-network.js";

type Json = Readonly<Record<string, unknown>>;

const runtime = cpuRuntime();
const view = {
  ...{ classes: ["cat", "dog"], size: 8, channels: 1, mean: [0.5], std: [0.25] },
  ...zoomOf(8, undefined),
};
const network = networkFor({ arch: "resnet20", width: 1 }, view);
const recipe = recipeFor("O2");

it("a network with a field that nobody meant is refused, or opens where it changes nothing", async () => {
  const model = await networkOf(runtime, network, 1).stateDict();
  const saved = (await savedNetwork({ network, view, recipe }).stateDict()) as Json;
  const opens = (parts: Json): Promise<string> =>
    opening(
      () => networkIn(runtime, { path: "step-1", step: 1, microStep: 0, best: false, parts }),
      exitCodeOf,
    );
  expect(await opens({ model, network: saved })).toBe("opened");
  for (const { field, kind, config } of hostileTrees(saved)) {
    const said = await opens({ model, network: config });
    if (said !== "opened") expect(said, `${field} ${kind}`).toMatch(/^step-1[ ,]/);
    else
      expect(`${field} ${kind}`).toMatch(
        /^(recipe\.|(view\.(resize|zoomsAll)|network\.block) )|^view\.size zero|(missing|null)$/,
      );
  }
  for (const layers of [
    [1e9, 1, 1],
    [3, 3, -3],
    [3, 3, 2.5],
    [3, 3],
    [3, 3, 3, 3],
  ]) {
    const changed = { ...saved, network: { ...network, layers } };
    expect(await opens({ model, network: changed })).toMatch(/^step-1[ ,]/);
  }
  for (const value of Object.values(hostileValues)) {
    expect(await opens({ model, network: value })).toMatch(/^step-1[ ,]/);
    expect(await opens({ model: value, network: saved })).toMatch(/^step-1[ ,]/);
  }
});
