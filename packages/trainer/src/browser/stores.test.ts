import { expect, test } from "vitest";
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
