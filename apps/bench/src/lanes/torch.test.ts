import { expect, test } from "vitest";
import { findTorch, openTorch } from "./torch.js";

test("a Python that is named must have PyTorch", async () => {
  await expect(findTorch("/nowhere/python")).rejects.toThrow(
    /^--python \/nowhere\/python: it has no PyTorch \(/,
  );
});

test("a process that does not come up is told of, not waited for", async () => {
  // Node takes the folder's script for JavaScript, and ends.
  await expect(openTorch(process.execPath, "/nowhere")).rejects.toThrow(
    "the process of PyTorch ended",
  );
});
