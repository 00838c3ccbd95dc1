import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** How the tests of a package that run on a GPU get their device. */
const usesGpu = /device\/(testing|node)"|\/(forward-check|special-values)\.js"/;

/**
 * The test files of a package or an app for a lane, relative to its folder.
 * @param {string} folder of the package or app
 * @param {{ suites?: boolean, files?: string[], lane?: string[], browser?: string[] }} wanted `suites`: all ordinary tests that use a GPU;
 * `files`: some of them; `lane`, `browser`: tests that are written for lanes and for browsers, by name
 */
export const testFiles = (folder, { suites = false, files = [], lane = [], browser = [] }) => [
  ...(suites ? gpuSuites(folder) : []),
  ...files,
  ...lane.map((name) => `test/${name}.lane.test.ts`),
  ...browser.map((name) => `test/browser/${name}.browser.test.ts`),
];

function gpuSuites(folder) {
  return ["src", "test"].flatMap((part) =>
    readdirSync(join(folder, part), { recursive: true })
      .filter((file) => file.endsWith(".test.ts") && !/\.(lane|browser)\.test\.ts$/.test(file))
      .filter((file) => usesGpu.test(readFileSync(join(folder, part, file), "utf8")))
      .map((file) => join(part, file))
      .sort(),
  );
}
