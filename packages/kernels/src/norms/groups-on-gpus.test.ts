import type { LaunchTarget } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  programsOf,
  someGpu,
  tiersInLanes,
  withHardware,
  withoutMemory,
} from "../../test/harness.js";
import { groupCases, placeMismatches } from "../../test/norm-cases.js";
import { normStatistics } from "./statistics.js";

// Programs for teams in memory, as on the packed tier, take this adapter long to compile: the lane of norm-rows.lane.test.ts has them.
const tiers = (await tiersInLanes()).slice(0, 1);

describe.each(tiers)("norms of groups by programs for GPUs, %s tier", (tier) => {
  it("equal those of the CPU", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    const onGpu = <B>(target: LaunchTarget<B>) => withHardware(target, someGpu);
    for (const shape of groupCases) found.push(...(await placeMismatches(device, shape, [onGpu])));
    expect(found).toEqual([]);
  });
});

describe("the WGSL of groups", () => {
  it("has a team for each large chunk, and for the merging of chunks, on GPUs alone", () => {
    const codesOf = (pixels: number, hardware = someGpu) => {
      const shape = { batch: 2, pixels, groups: 4, width: 16 };
      const operands = {
        input: withoutMemory(2 * pixels * 64, "float16"),
        ...{ mean: withoutMemory(8, "float32"), rstd: withoutMemory(8, "float32") },
      };
      return programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) =>
        normStatistics(target, operands, { ...shape, eps: 1e-5 }),
      );
    };
    const large = codesOf(300);
    expect(large.normStatistics).toContain("subgroupAdd(");
    expect(large.normMerge).toContain("team_sum(");
    expect(codesOf(3).normStatistics).not.toContain("subgroupAdd(");
    for (const code of Object.values(codesOf(300, { ...someGpu, class: "software" })))
      expect(code).not.toMatch(/subgroupAdd|team_sum/);
  });
});
