import { gpu } from "@halfstep/vitest";

// Seconds on a quiet machine; other people's training may be beside.
export default gpu({ testTimeout: 300_000 });
