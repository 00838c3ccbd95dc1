import { manyPrograms } from "@halfstep/vitest";

// Seconds on a quiet machine; other people's training may be beside.
export default manyPrograms({ testTimeout: 300_000 });
