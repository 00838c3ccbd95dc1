import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Checkpoint } from "./checkpoint/checkpoint.js";
import { CheckpointArchive, type FileStorage } from "./checkpoint/checkpoint-archive.js";
import { CheckpointFolder } from "./checkpoint/checkpoint-folder.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { type CheckpointStoreSubject, checkpointStoreContract } from "./testing.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-stores-"));
afterAll(() => rmSync(root, { recursive: true }));

let folders = 0;
const folder = (): string => join(root, String(folders));

const inFolder: CheckpointStoreSubject = {
  name: "a folder",
  create: async () => {
    folders++;
    return new CheckpointFolder(folder(), { keep: 2 });
  },
  reopen: async () => new CheckpointFolder(folder(), { keep: 2 }),
  async damageNewest() {
    const newest = readdirSync(folder()).sort().at(-1) as string;
    const file = join(folder(), newest, "state.json");
    const bytes = readFileSync(file);
    bytes[0] = (bytes[0] as number) ^ 1;
    writeFileSync(file, bytes);
  },
};

/** Files in memory that a test can change. */
let files = new Map<string, Uint8Array<ArrayBuffer>>();
const storage: FileStorage = {
  list: async () => [...files.keys()],
  read: async (name) => (files.get(name) as Uint8Array<ArrayBuffer>).slice(),
  write: async (name, bytes) => {
    files.set(name, bytes);
  },
  remove: async (name) => {
    files.delete(name);
  },
};
const archive = (): CheckpointArchive => new CheckpointArchive("files", storage, { keep: 2 });

const inMemory: CheckpointStoreSubject = (() => {
  let store = memoryCheckpoints({ keep: 2 });
  return {
    name: "memory",
    create: async () => {
      store = memoryCheckpoints({ keep: 2 });
      return store;
    },
    reopen: async () => store,
    // No one has its bytes.
    damageNewest: () => Promise.reject(new Error("memory is not damaged")),
  };
})();

const inArchive: CheckpointStoreSubject = {
  name: "an archive",
  create: async () => {
    files = new Map();
    return archive();
  },
  reopen: async () => archive(),
  async damageNewest() {
    const bytes = files.get([...files.keys()].sort().at(-1) as string) as Uint8Array;
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
  },
};

describe.each([inFolder, inArchive])("$name", (subject) => {
  for (const { name, run } of checkpointStoreContract(subject)) test(name, run);
});

const savedValue = (checkpoint: Checkpoint | undefined): unknown =>
  (checkpoint?.parts.model as { readonly value: number } | undefined)?.value;

test.each(
  checkpointStoreContract(inMemory).filter(({ name }) => /same step|written into/.test(name)),
)("$name", ({ run }) => run());

describe.each([inFolder, inArchive])("$name, of which a step is saved again", ({ create }) => {
  type Store = CheckpointFolder | CheckpointArchive;
  const content = (value: number, best = false) => ({
    ...{ step: 3, microStep: 0, best },
    parts: { model: { value } },
  });

  test("has the later one as the best", async () => {
    const store = (await create()) as Store;
    for (const value of [1, 2, 3]) {
      await store.save(content(value, true));
      expect(savedValue(await store.best())).toBe(value);
    }
    await store.save(content(4));
    expect(await store.best()).toBeUndefined();
  });

  test("marks the same state as the best, and forgets no mark", async () => {
    const store = (await create()) as Store;
    for (const best of [false, true, false]) await store.save(content(1, best));
    expect(savedValue(await store.best())).toBe(1);
    expect((await store.newest()).checkpoint?.best).toBe(true);
  });

  test("has the last of several that are saved at once", async () => {
    const store = (await create()) as Store;
    const saves = [1, 2, 3].map((value) => store.save(content(value, value === 2)));
    const found = await store.newest();
    await Promise.all(saves);
    expect(savedValue(found.checkpoint)).toBe(3);
    expect(savedValue((await store.newest()).checkpoint)).toBe(3);
    const failing = store.save({ ...content(4), parts: { model: { f() {} } } });
    await expect(failing).rejects.toThrow(TypeError);
    await store.save(content(5));
    expect(savedValue((await store.newest()).checkpoint)).toBe(5);
  });
});

describe("an archive", () => {
  const content = (step: number, best = false) => ({
    ...{ step, microStep: 0, best },
    parts: { model: { step } },
  });

  test("has the best, and can be cleared", async () => {
    const store = memoryCheckpoints({ keep: 1 });
    for (const step of [1, 2, 3]) await store.save(content(step, step === 2));
    expect((await store.best())?.step).toBe(2);
    await store.clear();
    expect(await store.newest()).toEqual({ checkpoint: undefined, skipped: [] });
  });

  test("keeps earlier checkpoints where a write fails", async () => {
    files = new Map();
    await archive().save(content(1));
    await archive().save(content(5));
    const full = new CheckpointArchive("files", {
      ...storage,
      write: () => Promise.reject(new Error("no room")),
    });
    await expect(full.save(content(3))).rejects.toThrow(/^files\/step-00000003\..* \(no room\)$/);
    expect((await archive().newest()).checkpoint?.step).toBe(5);
  });

  test("has the old or the new one where an operation fails while one of the same step is replaced", async () => {
    const of = (value: number) => ({ ...content(2, value === 1), parts: { model: { value } } });
    for (let failing = 0, isOver = false; !isOver; failing++) {
      files = new Map();
      await archive().save(of(1));
      let count = 0;
      const failingAt =
        <Given extends unknown[], T>(work: (...given: Given) => Promise<T>) =>
        (...given: Given): Promise<T> =>
          count++ === failing ? Promise.reject(new Error("no room")) : work(...given);
      const { list, read, write, remove } = storage;
      const faulty = {
        ...{ list: failingAt(list), read: failingAt(read) },
        ...{ write: failingAt(write), remove: failingAt(remove) },
      };
      const saved = await new CheckpointArchive("files", faulty).save(of(2)).then(
        () => true,
        () => false,
      );
      isOver = count <= failing;
      expect(saved).toBe(isOver);
      const { checkpoint, skipped } = await archive().newest();
      expect(skipped).toEqual([]);
      expect([1, 2]).toContain(savedValue(checkpoint));
      // And the next save clears up.
      await archive().save(of(3));
      expect(files.size).toBe(1);
    }
  });

  test("refuses files of other programs, and of later versions", async () => {
    files = new Map();
    await archive().save(content(1));
    const [name] = [...files.keys()];
    expect(name).toMatch(/^step-00000001\.[0-9a-f]{64}\.safetensors$/);
    files.set("notes.txt", new Uint8Array(1));
    expect((await archive().newest()).checkpoint?.step).toBe(1);
  });

  test("keeps at least one", () => {
    expect(() => memoryCheckpoints({ keep: 0 })).toThrow("keep is 0");
  });
});

test("the contract can fail", async () => {
  const broken: CheckpointStoreSubject = {
    ...inArchive,
    create: async () => ({ save: async () => {}, newest: () => archive().newest() }),
  };
  files = new Map();
  const outcomes = await Promise.allSettled(
    checkpointStoreContract(broken).map(({ run }) => run()),
  );
  expect(outcomes.filter(({ status }) => status === "rejected").length).toBeGreaterThan(5);
});
