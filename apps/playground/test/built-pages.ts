import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

/** The pages as they are published, in a folder that disappears with them. */
export interface BuiltPages {
  readonly folder: string;
  remove(): void;
}

/** Builds the pages. */
export async function buildPages(): Promise<BuiltPages> {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  const root = join(import.meta.dirname, "..");
  await build({
    configFile: join(root, "vite.config.ts"),
    root,
    build: { outDir: folder, emptyOutDir: true },
    logLevel: "error",
  });
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}
