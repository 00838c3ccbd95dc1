import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { readSafetensors } from "@halfstep/safetensors";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemError, watchedFileSystem } from "../../test/faulty-file-system.js";
import { StorageError } from "../errors.js";
import type { CheckpointContent } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import { CheckpointFolder } from "./checkpoint-folder.js";
import { isOwnName } from "./checkpoint-name.js";
import { formatManifest, parseManifest } from "./manifest.js";
import { readCheckpoint } from "./read-checkpoint.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "halfstep-checkpoints-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const content = (step: number, change: Partial<CheckpointContent> = {}): CheckpointContent => ({
  step,
  microStep: 0,
  best: false,
  parts: {
    model: { "fc.weight": { shape: [2], dtype: "float16", data: Float32Array.of(step, -1) } },
    training: { step, scale: 2 ** 16, lossless: [Number.NaN] },
  },
  ...change,
});

const saved = async (...contents: readonly CheckpointContent[]): Promise<CheckpointFolder> => {
  const folder = new CheckpointFolder(directory);
  for (const each of contents) await folder.save(each);
  return folder;
};

const rejection = async (promise: Promise<unknown>): Promise<CheckpointError> => {
  const error = await promise.then(
    () => new Error("nothing was thrown"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof CheckpointError)) throw error;
  return error;
};

describe("CheckpointFolder", () => {
  it("gives back what was saved, and the newest first", async () => {
    const folder = await saved(content(9), content(10), content(10, { microStep: 2 }));
    const { checkpoint, skipped } = await folder.newest();
    const path = join(directory, "step-00000010-micro-0002");
    expect(checkpoint).toEqual({ ...content(10, { microStep: 2 }), path });
    expect(skipped).toEqual([]);
    expect((await folder.list()).map((each) => basename(each))).toEqual([
      "step-00000010-micro-0002",
      "step-00000010",
      "step-00000009",
    ]);
  });

  it("reads no file that is longer than memory, or than a list of states", async () => {
    const path = join(directory, "step-00000001");
    for (const [name, bytes, fact] of [
      [
        "model.safetensors",
        2 ** 42,
        /model\.safetensors has \d+ bytes, more than there is memory for/,
      ],
      ["state.json", 2 ** 40, /state\.json has \d+ bytes, too many for a list of states/],
    ] as const) {
      rmSync(path, { recursive: true, force: true });
      await saved(content(1));
      const manifest = parseManifest(readFileSync(join(path, "manifest.json"), "utf8"), path);
      const files = manifest.files.map((file) => (file.name === name ? { ...file, bytes } : file));
      truncateSync(join(path, name), bytes);
      writeFileSync(join(path, "manifest.json"), formatManifest({ ...manifest, files }));
      expect((await rejection(readCheckpoint(path))).message).toMatch(fact);
    }
  });

  it("has files that other programs read", async () => {
    const folder = await saved(content(1));
    const [path = ""] = await folder.list();
    expect(readdirSync(path).sort()).toEqual(["manifest.json", "model.safetensors", "state.json"]);
    const { tensors } = readSafetensors(readFileSync(join(path, "model.safetensors")));
    expect(tensors["fc.weight"]).toMatchObject({ dtype: "F16", shape: [2] });
  });

  it("has the same bytes for the same content", async () => {
    const manifest = async (): Promise<string> => {
      const [path = ""] = await (await saved(content(1))).list();
      return readFileSync(join(path, "manifest.json"), "utf8");
    };
    const first = await manifest();
    rmSync(join(directory, "step-00000001"), { recursive: true });
    expect(await manifest()).toBe(first);
  });

  it("has nothing where nothing was saved", async () => {
    const folder = new CheckpointFolder(join(directory, "none"));
    expect(await folder.newest()).toEqual({ checkpoint: undefined, skipped: [] });
    expect(await folder.best()).toBeUndefined();
  });

  it("keeps the last few and the newest of the best", async () => {
    const folder = new CheckpointFolder(directory, { keep: 2 });
    const bests = new Set([2, 4]);
    for (let step = 1; step <= 7; step++)
      await folder.save(content(step, { best: bests.has(step) }));
    expect(readdirSync(directory).sort()).toEqual([
      "step-00000004",
      "step-00000006",
      "step-00000007",
    ]);
    expect(await folder.best()).toMatchObject({ step: 4, best: true });
  });

  it("clears up after a process that was ended, and takes no notice of it before", async () => {
    const folder = await saved(content(1), content(2));
    renameSync(join(directory, "step-00000002"), join(directory, "step-00000002.partial"));
    cpSync(join(directory, "step-00000001"), join(directory, "step-00000000.removed"), {
      recursive: true,
    });
    writeFileSync(join(directory, "notes.txt"), "not ours");
    expect(await folder.newest()).toMatchObject({ checkpoint: { step: 1 }, skipped: [] });
    await folder.save(content(3));
    expect(readdirSync(directory).sort()).toEqual(["notes.txt", "step-00000001", "step-00000003"]);
  });

  it("keeps the same state of a step, and marks it as the best, unless that is damaged", async () => {
    const folder = await saved(content(1));
    const before = readFileSync(join(directory, "step-00000001", "state.json"));
    await folder.save(content(1, { best: true }));
    expect((await folder.newest()).checkpoint?.best).toBe(true);
    expect(readFileSync(join(directory, "step-00000001", "state.json"))).toEqual(before);
    await folder.save(content(1));
    expect((await folder.newest()).checkpoint?.best).toBe(true);
    rmSync(join(directory, "step-00000001", "state.json"));
    await folder.save(content(1, { best: true }));
    expect((await folder.newest()).checkpoint?.best).toBe(true);
    expect(readdirSync(directory)).toEqual(["step-00000001"]);
  });

  it("forgets what comes after a step that was gone back to", async () => {
    const folder = await saved(content(1), content(5, { microStep: 1 }), content(9));
    await folder.save(content(5));
    expect(readdirSync(directory).sort()).toEqual(["step-00000001", "step-00000005"]);
    await folder.clear();
    expect(readdirSync(directory)).toEqual([]);
  });

  it("refuses what cannot be saved before it writes anything", async () => {
    const folder = new CheckpointFolder(join(directory, "new"));
    for (const name of ["state", "manifest", "../model", ""])
      await expect(folder.save(content(1, { parts: { [name]: {} } }))).rejects.toThrow(TypeError);
    await expect(folder.save(content(1, { parts: { f: () => {} } }))).rejects.toThrow("a function");
    expect(readdirSync(directory)).toEqual([]);
    expect(() => new CheckpointFolder(directory, { keep: 0 })).toThrow("keep is 0");
  });
});

describe("a damaged checkpoint", () => {
  const damages: readonly (readonly [
    string,
    (path: string) => void,
    CheckpointError["problem"],
    RegExp,
  ])[] = [
    [
      "no manifest",
      (path) => rmSync(join(path, "manifest.json")),
      "missing-file",
      /manifest.json is missing/,
    ],
    [
      "a missing file",
      (path) => rmSync(join(path, "model.safetensors")),
      "missing-file",
      /model.safetensors is missing/,
    ],
    [
      "a file too many",
      (path) => writeFileSync(join(path, "x.json"), ""),
      "extra-file",
      /x.json was not saved/,
    ],
    ["a folder too many", (path) => mkdirSync(join(path, "x")), "extra-file", /x was not saved/],
    [
      "a link in place of a file",
      (path) => {
        renameSync(join(path, "state.json"), `${path}.json`);
        symlinkSync(`${path}.json`, join(path, "state.json"));
      },
      "missing-file",
      /state.json is no file/,
    ],
    [
      "a longer file",
      (path) => writeFileSync(join(path, "state.json"), " ", { flag: "a" }),
      "length",
      /state.json has \d+ bytes, and \d+ were saved/,
    ],
    [
      "a manifest without end",
      (path) => writeFileSync(join(path, "manifest.json"), " ".repeat(2 ** 21 + 1)),
      "manifest",
      /too many for a manifest/,
    ],
    [
      "another order of the manifest",
      (path) => {
        const file = join(path, "manifest.json");
        writeFileSync(file, JSON.stringify(JSON.parse(readFileSync(file, "utf8"))));
      },
      "manifest",
      /manifest.json is not what was saved/,
    ],
    [
      "a later format",
      (path) => {
        const file = join(path, "manifest.json");
        writeFileSync(file, readFileSync(file, "utf8").replace('"version": 1', '"version": 2'));
      },
      "version",
      /has version 2 of the format.*update @halfstep\/trainer/,
    ],
    [
      "a file instead of the folder",
      (path) => {
        rmSync(path, { recursive: true });
        writeFileSync(path, "");
      },
      "not-found",
      /is no checkpoint/,
    ],
  ];

  it.each(damages)("is passed over, and why is said: %s", async (_, damage, problem, message) => {
    const folder = await saved(content(1), content(2));
    damage(join(directory, "step-00000002"));
    const { checkpoint, skipped } = await folder.newest();
    expect(checkpoint).toMatchObject(content(1));
    expect(skipped.map((error) => error.problem)).toEqual([problem]);
    expect(skipped[0]?.message).toMatch(message);
    expect(skipped[0]?.path.startsWith(join(directory, "step-00000002"))).toBe(true);
  });

  it("is told by every byte and by every length", async () => {
    const folder = await saved(content(1));
    const [path = ""] = await folder.list();
    const problems = new Map<string, number>();
    const unnoticed: string[] = [];
    const tryWith = async (name: string, bytes: Uint8Array, what: string): Promise<void> => {
      writeFileSync(join(path, name), bytes);
      const problem = await readCheckpoint(path).then(
        () => undefined,
        (error) => (error instanceof CheckpointError ? error.problem : `${error}`),
      );
      problems.set(`${problem}`, (problems.get(`${problem}`) ?? 0) + 1);
      if (problem === undefined) unnoticed.push(`${name}: ${what}`);
    };
    for (const name of readdirSync(path)) {
      const whole = readFileSync(join(path, name));
      for (let at = 0; at < whole.length; at++) {
        const flipped = Uint8Array.from(whole);
        flipped[at] = (whole[at] as number) ^ (1 << (at % 8));
        await tryWith(name, flipped, `bit ${at % 8} of byte ${at}`);
        await tryWith(name, whole.subarray(0, at), `cut to ${at} bytes`);
      }
      writeFileSync(join(path, name), whole);
    }
    expect(unnoticed).toEqual([]);
    expect([...problems.keys()].sort()).toEqual(["hash", "length", "manifest", "version"]);
    expect(await readCheckpoint(path)).toMatchObject(content(1));
  });

  it("is never one of several that are all lost", async () => {
    const folder = await saved(content(1), content(2));
    for (const path of await folder.list()) rmSync(join(path, "state.json"));
    const error = await rejection(folder.newest());
    expect(error.problem).toBe("not-found");
    expect(error.message).toMatch(
      /has 2 checkpoints and none that is whole .*state.json is missing.*train anew without resuming/,
    );
  });

  it("is malformed where its hashes are right and its content is not", async () => {
    const { files, ...head } = parseManifest(
      readFileSync(
        join((await (await saved(content(1))).list())[0] ?? "", "manifest.json"),
        "utf8",
      ),
      "",
    );
    const path = join(directory, "step-00000001");
    const { createHash } = await import("node:crypto");
    const forge = (name: string, bytes: Uint8Array): void => {
      writeFileSync(join(path, name), bytes);
      const others = files.filter((file) => file.name !== name);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const manifest = formatManifest({
        ...head,
        files: [...others, { name, bytes: bytes.length, sha256 }],
      });
      writeFileSync(join(path, "manifest.json"), manifest);
    };
    const state = readFileSync(join(path, "state.json"));
    const texts = [
      "[]",
      "{",
      "null",
      '{"model":{"$array":"none"},"training":1}',
      '{"training":1}',
      `{"model":${"[".repeat(1e5)}${"]".repeat(1e5)}}`,
    ];
    const messages: string[] = [];
    for (const text of texts) {
      forge("state.json", Buffer.from(text));
      const error = await rejection(readCheckpoint(path));
      expect(error.problem).toBe("malformed");
      messages.push(error.message);
    }
    expect(messages[3]).toMatch(/state.json model refers to a tensor "none", which is not there/);
    writeFileSync(join(path, "state.json"), state);
    forge("model.safetensors", Buffer.from("PK not safetensors at all"));
    expect((await rejection(readCheckpoint(path))).message).toMatch(
      /model.safetensors is malformed/,
    );
  });
});

describe("a write that fails", () => {
  it("leaves the checkpoints before it as they were, whichever operation it is", async () => {
    const operations: string[] = [];
    const counting = watchedFileSystem((name) => operations.push(name));
    // Two are there, and one of them goes when the third comes.
    const make = async (fileSystem = counting): Promise<CheckpointFolder> => {
      rmSync(directory, { recursive: true });
      mkdirSync(directory);
      const folder = new CheckpointFolder(directory, { keep: 2, fileSystem });
      for (const step of [1, 2]) await new CheckpointFolder(directory).save(content(step));
      return folder;
    };
    await (await make()).save(content(3));
    expect(operations).toEqual(
      expect.arrayContaining(["mkdir", "open", "write", "sync", "rename", "readdir", "rm"]),
    );
    const outcomes: string[] = [];
    for (const [failing, name] of operations.entries()) {
      let count = 0;
      const folder = await make(
        watchedFileSystem((operation) => {
          if (count++ === failing) throw systemError("ENOSPC", operation);
        }),
      );
      const error = await folder.save(content(3)).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      const { checkpoint, skipped } = await new CheckpointFolder(directory).newest();
      const isIntact = skipped.length === 0 && (checkpoint?.step === 2 || checkpoint?.step === 3);
      const isTyped =
        error instanceof StorageError && error.message.includes("no space left on the disk");
      if (!isIntact || !isTyped) outcomes.push(`${failing} ${name}: ${error}`);
      // And the next save has all that it needs.
      await new CheckpointFolder(directory).save(content(4));
      if ((await new CheckpointFolder(directory).newest()).checkpoint?.step !== 4)
        outcomes.push(`${failing} ${name}: no more`);
    }
    expect(operations.length).toBeGreaterThan(20);
    expect(outcomes).toEqual([]);
  });

  it("leaves the old or the new one of a step, whichever operation it is", async () => {
    const of = (value: number): CheckpointContent => content(2, { parts: { model: { value } } });
    const outcomes = new Set<string>();
    for (let failing = 0, isOver = false; !isOver; failing++) {
      rmSync(directory, { recursive: true });
      await saved(content(1), of(1));
      let count = 0;
      const fileSystem = watchedFileSystem((operation) => {
        if (count++ >= failing) throw systemError("ENOSPC", operation);
      });
      const isSaved = await new CheckpointFolder(directory, { fileSystem }).save(of(2)).then(
        () => true,
        () => false,
      );
      isOver = count <= failing;
      expect(isSaved).toBe(isOver);
      const { checkpoint, skipped } = await new CheckpointFolder(directory).newest();
      const model = checkpoint?.parts.model as { readonly value: number } | undefined;
      const name = basename(checkpoint?.path ?? "");
      outcomes.add(`${skipped.length} skipped, ${model?.value} in ${name}`);
      // A run folder that begins anew finds its own names only, and the next save clears up.
      expect(readdirSync(directory).filter((each) => !isOwnName(each))).toEqual([]);
      await new CheckpointFolder(directory).save(content(3));
      expect(readdirSync(directory).sort()).toEqual([
        ...["step-00000001", "step-00000002", "step-00000003"],
      ]);
      const kept = await readCheckpoint(join(directory, "step-00000002"));
      expect(kept.parts.model).toEqual(model);
    }
    expect([...outcomes]).toEqual([
      "0 skipped, 1 in step-00000002",
      "0 skipped, 1 in step-00000002.replaced",
      "0 skipped, 2 in step-00000002",
    ]);
  });

  it("leaves none to clear where one was being replaced", async () => {
    const folder = await saved(content(2));
    cpSync(join(directory, "step-00000002"), join(directory, "step-00000002.replaced"), {
      recursive: true,
    });
    await folder.clear();
    expect(readdirSync(directory)).toEqual([]);
  });

  it("meets a disk that is really full", async () => {
    const folder = await saved(content(1));
    const { open } = await import("node:fs/promises");
    const full = new CheckpointFolder(directory, {
      fileSystem: {
        ...watchedFileSystem(() => {}),
        open: (path, flags) =>
          open(
            `${path}`.endsWith("model.safetensors") ? "/dev/full" : path,
            flags === "wx" && `${path}`.endsWith("model.safetensors") ? "w" : flags,
          ),
      },
    });
    const path = join(directory, "step-00000002.partial", "model.safetensors");
    await expect(full.save(content(2))).rejects.toThrow(
      `${path} cannot be written (no space left on the disk)`,
    );
    expect(readdirSync(directory)).toEqual(["step-00000001"]);
    expect((await folder.newest()).checkpoint).toMatchObject(content(1));
  });
});
