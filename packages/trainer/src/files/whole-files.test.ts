import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemError, watchedFileSystem } from "../../test/faulty-file-system.js";
import { StorageError } from "../errors.js";
import type { FileSystem } from "./file-system.js";
import { writeWholeFile } from "./whole-file.js";
import { writeWholeFolder } from "./whole-folder.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "halfstep-files-"));
});
afterEach(() => rmSync(directory, { recursive: true }));
const inside = (name: string): string => join(directory, name);

/** All files below a folder, with what they hold; folders that are empty too. */
const contents = (folder: string): Readonly<Record<string, string | null>> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .map((entry) => [entry, join(entry.parentPath, entry.name)] as const)
      .filter(([entry, path]) => !entry.isDirectory() || readdirSync(path).length === 0)
      .map(([entry, path]) => [
        path.slice(folder.length + 1),
        entry.isDirectory() ? null : readFileSync(path, "utf8"),
      ]),
  );

/**
 * Does something once for each operation on files that it takes, each time with that operation failing, and compares what is there
 * afterwards. Returns the operations.
 */
const failEach = async (
  write: (fileSystem: FileSystem) => Promise<unknown>,
  prepare: () => void,
  isRight: (left: Readonly<Record<string, string | null>>, failed: string) => boolean,
): Promise<readonly string[]> => {
  const anew = (): void => {
    rmSync(directory, { recursive: true });
    mkdirSync(directory);
    prepare();
  };
  const operations: string[] = [];
  anew();
  await write(watchedFileSystem((name) => operations.push(name)));
  const wrong: string[] = [];
  for (const [failing, name] of operations.entries()) {
    anew();
    let count = 0;
    const error = await write(
      watchedFileSystem((operation) => {
        if (count++ === failing) throw systemError("ENOSPC", operation);
      }),
    ).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const isTyped =
      error instanceof StorageError &&
      error.message.startsWith(inside("out")) &&
      error.message.endsWith(
        "(no space left on the disk): make room, or choose a place on another disk",
      );
    const left = contents(directory);
    if (!isTyped || !isRight(left, name))
      wrong.push(`${failing} ${name}: ${error} ${JSON.stringify(left)}`);
  }
  expect(wrong).toEqual([]);
  return operations;
};

const oneOf =
  (...states: readonly Readonly<Record<string, string | null>>[]) =>
  (left: Readonly<Record<string, string | null>>): boolean =>
    states.some((state) => JSON.stringify(left) === JSON.stringify(state));

describe("writeWholeFile", () => {
  it("writes text, bytes, and what comes piece by piece, over an older file too", async () => {
    const path = inside("out");
    await writeWholeFile(path, "täxt");
    expect(readFileSync(path, "utf8")).toBe("täxt");
    await writeWholeFile(path, Uint8Array.of(1, 2));
    expect([...readFileSync(path)]).toEqual([1, 2]);
    await writeWholeFile(path, async (sink) => {
      for (const byte of [3, 4]) await sink.write(Uint8Array.of(byte));
    });
    expect([...readFileSync(path)]).toEqual([3, 4]);
    expect(readdirSync(directory)).toEqual(["out"]);
  });

  it("leaves the old file or the new one and nothing else, whichever operation fails", async () => {
    const operations = await failEach(
      (fileSystem) => writeWholeFile(inside("out"), "new", { fileSystem }),
      () => writeFileSync(inside("out"), "old"),
      oneOf({ out: "old" }, { out: "new" }),
    );
    expect(operations).toEqual(
      expect.arrayContaining(["open", "write", "chmod", "sync", "rename", "open", "sync"]),
    );
    await failEach(
      (fileSystem) => writeWholeFile(inside("out"), "new", { fileSystem }),
      () => {},
      oneOf({}, { out: "new" }),
    );
  });

  it("leaves the old file where its content cannot be made", async () => {
    writeFileSync(inside("out"), "old");
    const fill = async (): Promise<never> => {
      throw new RangeError("no such tensor");
    };
    await expect(writeWholeFile(inside("out"), fill)).rejects.toThrow(RangeError);
    expect(contents(directory)).toEqual({ out: "old" });
  });

  it("keeps permissions and links", async () => {
    writeFileSync(inside("out"), "old");
    chmodSync(inside("out"), 0o640);
    symlinkSync("out", inside("link"));
    await writeWholeFile(inside("link"), "new");
    expect(readFileSync(inside("out"), "utf8")).toBe("new");
    expect(statSync(inside("out")).mode & 0o777).toBe(0o640);
    expect(lstatSync(inside("link")).isSymbolicLink()).toBe(true);
  });

  it("writes to a device as it is, and says in a line what is in the way", async () => {
    await writeWholeFile("/dev/null", "gone");
    expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
    await expect(writeWholeFile("/dev/full", "gone")).rejects.toThrow(
      "/dev/full cannot be written (no space left on the disk): make room",
    );
    await expect(writeWholeFile(directory, "x")).rejects.toThrow(
      "a folder of that name is in the way",
    );
    await expect(writeWholeFile(inside("no/out"), "x")).rejects.toThrow(
      `${inside("no/out")} cannot be written (there is no such file or folder): check the path`,
    );
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe("writeWholeFolder", () => {
  const write = (fileSystem?: FileSystem): Promise<string> =>
    writeWholeFolder(
      inside("out/model"),
      async (folder) => {
        await folder.write("config.json", "{}");
        await folder.write("masks/a/1.png", "one");
        return "done";
      },
      fileSystem && { fileSystem },
    );
  const whole = { "out/model/config.json": "{}", "out/model/masks/a/1.png": "one" };

  it("writes files in folders, and returns what the function does", async () => {
    expect(await write()).toBe("done");
    expect(contents(directory)).toEqual(whole);
  });

  it("makes the folder with all of its files or not at all, whichever operation fails", async () => {
    const operations = await failEach(write, () => {}, oneOf({}, { out: null }, whole));
    expect(operations.filter((name) => name === "rename")).toHaveLength(1);
  });

  it("moves files into a folder that is there, once all of them are written", async () => {
    const before = { "out/model/config.json": "old", "out/model/notes.txt": "mine" };
    const prepare = (): void => {
      mkdirSync(inside("out/model"), { recursive: true });
      for (const [name, text] of Object.entries(before)) writeFileSync(inside(name), text);
    };
    prepare();
    await write();
    const after = { ...whole, "out/model/notes.txt": "mine" };
    expect(contents(directory)).toEqual(after);
    const known = new Set(["{}", "one", "mine", "old", null]);
    await failEach(write, prepare, (left, failed) =>
      ["write", "open"].includes(failed) && !("out/model/masks/a/1.png" in left)
        ? JSON.stringify(left) === JSON.stringify(before)
        : Object.entries(left).every(
            ([name, text]) => known.has(text) && !name.includes("partial"),
          ),
    );
  });

  it("removes what is written at the time of a failure, and writes nothing after it", async () => {
    const later: Promise<unknown>[] = [];
    const held = watchedFileSystem(async (operation, path) => {
      if (operation !== "mkdir" || !path.endsWith("slow")) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    });
    const failed = writeWholeFolder(
      inside("out"),
      async (folder) => {
        const slow = folder.write("slow/a", "b");
        later.push(slow.then(() => folder.write("slow/c", "d")).catch(String));
        throw new RangeError("no such image");
      },
      { fileSystem: held },
    );
    await expect(failed).rejects.toThrow("no such image");
    expect(await later[0]).toMatch("slow/c comes after the end of writing");
    expect(contents(directory)).toEqual({});
  });

  it("waits for writes that the function did not wait for", async () => {
    await writeWholeFolder(inside("out"), async (folder) => {
      for (const name of ["a", "b"]) void folder.write(name, name);
    });
    expect(contents(directory)).toEqual({ "out/a": "a", "out/b": "b" });
    const failed = writeWholeFolder(inside("out"), async (folder) => {
      folder.write("../c", "d").catch(() => {});
    });
    await expect(failed).rejects.toThrow("no name of a file within a folder");
  });

  it("leaves nothing where the function fails, and takes no file out of the folder", async () => {
    await expect(
      writeWholeFolder(inside("out"), async (folder) => {
        await folder.write("a", "b");
        await folder.write("../c", "d");
      }),
    ).rejects.toThrow('"../c" is no name of a file within a folder');
    expect(existsSync(inside("out"))).toBe(false);
    writeFileSync(inside("out"), "file");
    await expect(write()).rejects.toThrow(StorageError);
    await expect(writeWholeFolder(inside("out"), async () => {})).rejects.toThrow(
      "a file of that name is in the way",
    );
    expect(contents(directory)).toEqual({ out: "file" });
  });
});
