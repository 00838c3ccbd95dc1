import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
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
  read: async (name) => files.get(name) as Uint8Array<ArrayBuffer>,
  write: async (name, bytes) => {
    files.set(name, bytes);
  },
  remove: async (name) => {
    files.delete(name);
  },
};
const archive = (): CheckpointArchive => new CheckpointArchive("files", storage, { keep: 2 });

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
