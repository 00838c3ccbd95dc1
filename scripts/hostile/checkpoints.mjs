// Checkpoints whose files are damaged, with and without a manifest that says so.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatManifest } from "../../packages/trainer/src/checkpoint/manifest.ts";
import { readCheckpoint } from "../../packages/trainer/src/checkpoint/read-checkpoint.ts";
import { CheckpointFolder } from "../../packages/trainer/src/node.ts";
import { hostileFields, hostileJson } from "../../tooling/vitest/hostile.js";
import { writeWhole } from "../whole-file.mjs";
import { contents, cuts } from "./contents.mjs";

const name = "step-00000003";
const files = ["manifest.json", "state.json", "model.safetensors", "optimizer.safetensors"];

const save = (folder) =>
  new CheckpointFolder(folder).save({
    ...{ step: 3, microStep: 0, best: true },
    parts: {
      model: { weight: { shape: [2, 3], dtype: "float32", data: new Float32Array(6).fill(0.5) } },
      optimizer: { groups: [{ lr: 0.1, moments: new Float32Array(6) }], step: 3 },
      training: { epoch: 1, best: null, seed: "12" },
    },
  });

/** A file with each of some of its bytes changed. */
const flips = (bytes, count) =>
  Array.from({ length: count }, (_, i) => {
    const at = Math.floor((i * bytes.length) / count);
    return { name: `byte ${at} changed`, bytes: bytes.with(at, bytes[at] ^ 0x41) };
  });

const damaged = (original) => [
  ...contents,
  ...cuts(original, 8),
  ...flips(new Uint8Array(original), 40),
  { name: "a byte more", bytes: Buffer.concat([original, Buffer.alloc(1)]) },
];

/** A manifest with each of its fields wrong in each way. */
const manifests = (original) => {
  const json = JSON.parse(original.toString());
  const fields = ["format", "version", "step", "microStep", "best", "files", "sha256"];
  const changed = [...hostileFields(json, fields)].map(({ field, kind, config }) => ({
    name: `${field} ${kind}`,
    bytes: new TextEncoder().encode(hostileJson(config)),
  }));
  return [...damaged(original), ...changed];
};

/** Reads a checkpoint, after its manifest was made to say that a file has the bytes that it has. */
async function readAgreeing(path, bytes) {
  const folder = join(path, "..");
  const manifest = JSON.parse(readFileSync(join(folder, files[0]), "utf8"));
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const changed = { bytes: bytes.length, sha256 };
  const entries = manifest.files.map((entry) =>
    path.endsWith(entry.name) ? { ...entry, ...changed } : entry,
  );
  writeWhole(join(folder, files[0]), formatManifest({ ...manifest, files: entries }));
  return readCheckpoint(folder);
}

/** Each with the file, its hostile contents by the original, what makes the folder, and the reader. */
export const checkpoints = Object.fromEntries([
  ...files.map((file) => [
    `${file} of checkpoints`,
    [
      join(name, file),
      file === files[0] ? manifests : damaged,
      save,
      (path) => readCheckpoint(join(path, "..")),
    ],
  ]),
  ...files.slice(1).map((file) => [
    `${file} of checkpoints, and in their manifest`,
    // A state without parts is one, and then the other files are too many.
    [
      join(name, file),
      () => contents.filter((each) => each.name !== "an empty object"),
      save,
      readAgreeing,
    ],
  ]),
]);
