import { expect, test, vi } from "vitest";
import { StorageError } from "../errors.js";
import { indexedDbCheckpoints } from "./indexed-db-checkpoints.js";
import { opfsCheckpoints } from "./opfs-checkpoints.js";

test("places that are none are refused", () => {
  for (const path of ["", "/", "a/../b", ".", 5, undefined])
    expect(() => opfsCheckpoints(path as string)).toThrow("it must name a folder, such as");
  for (const database of ["", 5, undefined])
    expect(() => indexedDbCheckpoints(database as string)).toThrow("it must be a name, such as");
});

test("unknown options are refused", () => {
  const options = { kepe: 2 } as never;
  for (const make of [opfsCheckpoints, indexedDbCheckpoints])
    expect(() => make("runs", options)).toThrow(
      "a store of checkpoints has no option kepe: it has keep",
    );
});

test("a browser that forbids files, as in private windows, is a StorageError that names other stores", async () => {
  const getDirectory = (): Promise<never> =>
    Promise.reject(new DOMException("Security error when calling GetDirectory", "SecurityError"));
  vi.stubGlobal("navigator", { storage: { getDirectory } });
  try {
    await expect(opfsCheckpoints("runs/digits").newest()).rejects.toThrow(
      "runs/digits cannot be read (the browser forbids it, as in private windows): use another store: indexedDbCheckpoints() or memoryCheckpoints()",
    );
  } finally {
    vi.unstubAllGlobals();
  }
});

test("storage that cannot be read is a StorageError, which names the place", async () => {
  // Node has neither.
  for (const make of [opfsCheckpoints, indexedDbCheckpoints]) {
    const failure = await make("runs/digits")
      .newest()
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StorageError);
    expect(String(failure)).toContain("runs/digits cannot be read");
  }
});
