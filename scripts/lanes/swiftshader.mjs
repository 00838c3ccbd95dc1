import { readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const manifest = "vk_swiftshader_icd.json";

/** Where Chromium's packages lie that systems install. */
const installed = [
  "/usr/lib/chromium",
  "/usr/lib/chromium-browser",
  "/usr/lib64/chromium-browser",
  "/opt/google/chrome",
  "/opt/chromium.org/chromium",
];

/**
 * Folders in which a Chromium may be, and how many levels below each: what the environment names, what is on the path and
 * installed, and the caches of Playwright and Puppeteer.
 * @param {Record<string, string | undefined>} env
 * @returns {{ folder: string, levels: number }[]}
 */
export const chromiumFolders = (env) => {
  const { CHROME_PATH, CHROME_BIN, PUPPETEER_EXECUTABLE_PATH, PATH = "" } = env;
  const executables = [CHROME_PATH, CHROME_BIN, PUPPETEER_EXECUTABLE_PATH].filter(Boolean);
  const caches = env.XDG_CACHE_HOME || (env.HOME && join(env.HOME, ".cache"));
  const exactly = [
    ...executables.map(dirname),
    ...PATH.split(delimiter).filter(Boolean),
    ...installed,
  ];
  const below = [
    env.PLAYWRIGHT_BROWSERS_PATH,
    env.PUPPETEER_CACHE_DIR,
    caches && join(caches, "ms-playwright"),
    caches && join(caches, "puppeteer"),
  ].filter(Boolean);
  return [
    ...exactly.map((folder) => ({ folder, levels: 0 })),
    ...below.map((folder) => ({ folder, levels: 3 })),
  ];
};

/**
 * The manifest of the SwiftShader that comes with a Chromium: a Vulkan driver that computes on the CPU.
 * @param {{ folder: string, levels: number }[]} folders
 * @returns {string | undefined} its path; undefined where no Chromium is found
 */
export const findSwiftShader = (folders = chromiumFolders(process.env)) => {
  for (const { folder, levels } of folders) {
    const found = findBelow(folder, levels);
    if (found !== undefined) return found;
  }
  return undefined;
};

function findBelow(folder, levels) {
  const entries = entriesOf(folder);
  if (entries.some(({ name }) => name === manifest)) return join(folder, manifest);
  if (levels === 0) return undefined;
  for (const entry of entries) {
    const found = entry.isDirectory() ? findBelow(join(folder, entry.name), levels - 1) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function entriesOf(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
