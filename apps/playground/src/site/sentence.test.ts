import { afterEach, expect, test, vi } from "vitest";
import { noGpuText } from "./no-gpu.js";
import { ended, sentence } from "./sentence.js";
import { workerErrorText } from "./worker-error.js";

afterEach(() => vi.unstubAllGlobals());

test("messages become sentences, and names of files stay as they are", () => {
  expect(sentence("the browser has no adapter")).toBe("The browser has no adapter.");
  expect(sentence("model.pt is a checkpoint.")).toBe("model.pt is a checkpoint.");
  expect(ended("my file is a checkpoint")).toBe("my file is a checkpoint.");
});

test("a page without a GPU says what its visitor can do", () => {
  const error = new Error("there is no adapter: turn it on");
  vi.stubGlobal("navigator", { gpu: {} });
  expect(noGpuText(error)).toBe("There is no adapter: turn it on.");
  vi.stubGlobal("navigator", {});
  expect(noGpuText(error)).toContain("open this page in a recent Chrome");
  vi.stubGlobal("isSecureContext", false);
  expect(noGpuText(error)).toContain("by https, or on localhost");
});

test("a worker whose script is missing says something, too", () => {
  expect(workerErrorText({ message: "it is broken" })).toBe("It is broken.");
  expect(workerErrorText({})).toContain("check the connection, and load the page again.");
});
