import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, runOnCpu } from "../../test/harness.js";
import { copyWords } from "./copy-words.js";

const tiers = await testTiers();

const operandsOf = (length: number) =>
  ({
    input: { values: Array.from({ length }, (_, i) => 0xffc0_0001 + i), dtype: "uint32" },
    out: { values: new Array<number>(length).fill(0), dtype: "uint32" },
  }) as const;

describe("copyWords", () => {
  it("copies words", () => {
    const operands = operandsOf(7);
    const found = runOnCpu(operands, (target, bindings) => target.launch(copyWords(bindings)));
    expect([...found.out]).toEqual(operands.input.values);
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found = await deviceMismatches(
      device,
      operandsOf(131),
      (target, bindings) => target.launch(copyWords(bindings)),
      { out: { relative: 0, absolute: 0 } },
    );
    expect(found).toEqual([]);
  });
});
