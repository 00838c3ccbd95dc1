import { manyNarrowPrograms } from "@halfstep/vitest";

// `npm test` takes the best tier of the adapter. The packed tier is for lanes, with subgroups and without, and for the suites of tensors, in
// which each op runs on it (decision 157).
if (!process.env.HALFSTEP_LANE_TESTS) process.env.HALFSTEP_TEST_TIERS ??= "best";

export default manyNarrowPrograms();
