import { chromium } from "playwright-core";
import { gpuEnvironment } from "../../scripts/bootstrap/adapter.mjs";
import { chromium as anyChromium, findBrowser } from "../../scripts/bootstrap/browsers.mjs";
import { lavapipe } from "./lavapipe.js";

const flags = [
  "--no-sandbox",
  "--disable-gpu-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--enable-unsafe-webgpu",
];

export const openBrowser = async ({ lane = "swiftshader", flags: others = [] } = {}) => {
  const executable = findBrowser(anyChromium);
  if (executable === undefined)
    throw new Error(
      "there is no Chromium on this machine: npm run test:browser installs one, or says how",
    );
  const { VK_DRIVER_FILES, VK_ICD_FILENAMES, ...env } = { ...process.env, ...gpuEnvironment() };
  const started =
    lane === "lavapipe" ? await lavapipe(executable) : { executablePath: executable, env: {} };
  const browser = await chromium.launch({
    executablePath: started.executablePath,
    headless: true,
    args: [...flags, ...others],
    env: { ...env, ...started.env },
    timeout: 120_000,
  });
  const session = await browser.newBrowserCDPSession();
  return {
    browser,
    async gpuProcess() {
      const { processInfo } = await session.send("SystemInfo.getProcessInfo");
      return processInfo.find(({ type }) => type === "GPU")?.id;
    },
    close: () => browser.close(),
  };
};
