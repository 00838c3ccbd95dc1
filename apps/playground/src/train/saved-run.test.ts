import { afterEach, expect, test, vi } from "vitest";
import { SavedRun } from "./saved-run.js";

afterEach(() => vi.unstubAllGlobals());

test("a run is found again while the page lives, and a page without https keeps none and goes on", async () => {
  vi.stubGlobal("navigator", {});
  const state = { step: 1, lanes: {} };
  const saved = await SavedRun.open();
  await saved.save("run", state);
  expect(await saved.find("run")).toEqual(state);
  expect(await saved.find("another run")).toBeUndefined();
  vi.stubGlobal("crypto", {});
  const none = await SavedRun.open();
  await none.save("run", state);
  expect(await none.find("run")).toBeUndefined();
  await none.clear();
});
