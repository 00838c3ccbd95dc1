import { createHash } from "node:crypto";
import { CheckpointError } from "./checkpoint-error.js";

/** A file of a checkpoint as it was written. */
export interface FileEntry {
  readonly name: string;
  readonly bytes: number;
  /** Hexadecimal digits. */
  readonly sha256: string;
}

/** The table of contents of a checkpoint. It is written last: a folder without it is not a checkpoint. */
export interface Manifest {
  readonly step: number;
  readonly microStep: number;
  readonly best: boolean;
  /** Absent where the tables are not known. */
  readonly tables?: string | undefined;
  /** All files but the manifest, by name. */
  readonly files: readonly FileEntry[];
}

export const manifestName = "manifest.json";

const format = "halfstep-checkpoint";
const version = 1;

/** The most bytes that are read as a manifest: room for ten thousand files. */
export const manifestLimit: number = 2 ** 21;

/** `manifest.json`, whose last member is the hash of the members before it. */
export function formatManifest({ step, microStep, best, tables, files }: Manifest): string {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const content = {
    ...{ format, version, step, microStep, best },
    ...(tables !== undefined && { tables }),
    files: sorted.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })),
  };
  return `${JSON.stringify({ ...content, sha256: sha256Of(JSON.stringify(content)) }, undefined, 2)}\n`;
}

/**
 * Reads what {@link formatManifest} wrote, and nothing else: any other byte is an error.
 * @throws CheckpointError
 */
export function parseManifest(text: string, path: string): Manifest {
  const damaged = (): never => {
    throw new CheckpointError("manifest", path, `is not what was saved: ${remedy}`);
  };
  const parsed = parseJson(text) ?? damaged();
  if (!isRecord(parsed) || parsed.format !== format) return damaged();
  if (typeof parsed.version === "number" && parsed.version > version)
    throw new CheckpointError(
      "version",
      path,
      `has version ${parsed.version} of the format, and this program knows ${version}: update @halfstep/trainer`,
    );
  const { step, microStep, best, tables, files } = parsed;
  if (tables !== undefined && typeof tables !== "string") return damaged();
  if (!isCount(step) || !isCount(microStep) || typeof best !== "boolean") return damaged();
  if (!Array.isArray(files) || !files.every(isFileEntry)) return damaged();
  const manifest: Manifest = {
    step,
    microStep,
    best,
    files,
    ...(tables !== undefined && { tables }),
  };
  return formatManifest(manifest) === text ? manifest : damaged();
}

/** The remedy for a damaged checkpoint. */
export const remedy =
  'go on from an older one, as resume: "auto" (--resume auto) does, and delete this one';

export const sha256Of = (data: string | Uint8Array): string =>
  createHash("sha256").update(data).digest("hex");

function isFileEntry(value: unknown): value is FileEntry {
  if (!isRecord(value)) return false;
  const { name, bytes, sha256 } = value;
  return (
    typeof name === "string" &&
    /^[\w-]+\.(json|safetensors)$/.test(name) &&
    name !== manifestName &&
    isCount(bytes) &&
    typeof sha256 === "string" &&
    /^[0-9a-f]{64}$/.test(sha256)
  );
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Parses JSON; undefined where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
