import { afterAll, expect, test } from "vitest";
import { openPeers } from "./open-peers.js";

// One device is shared with other libraries, and buffers go from one to the other without copies.

const peers = await openPeers();
afterAll(() => peers.close());

test.each([
  ["typegpu", { values: [10, 20, 30], isShared: true }],
  ["tfjs", { values: [30, 50, 70] }],
  ["onnxruntime", { values: [44, 48, 52] }],
  ["three", { values: [3.5, 6.5, 9.5, 12.5] }],
])("with %s", async (name, expected) => {
  const { found, messages } = await peers.evaluate(`shares.${name}()`);
  expect(found, messages.join("\n")).toEqual(expected);
});
