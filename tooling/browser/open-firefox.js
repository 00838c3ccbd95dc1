import { createRequire } from "node:module";
import { join } from "node:path";
import { gpuEnvironment } from "../../scripts/bootstrap/adapter.mjs";
import { findBrowser, firefox } from "../../scripts/bootstrap/browsers.mjs";
import { wgpuFolder } from "../../scripts/lanes/wgpu.mjs";

// Firefox has WebGPU on other systems, and offers no adapter on Linux by itself.
const settings = { "dom.webgpu.enabled": true, "gfx.webgpu.ignore-blocklist": true };

export const openFirefox = async () => {
  const executable = findBrowser(firefox);
  if (executable === undefined)
    throw new Error(
      "there is no Firefox on this machine: npm run test:browser installs one, or says how",
    );
  // The lanes that use it install it.
  const puppeteer = createRequire(join(wgpuFolder, "package.json"))("puppeteer-core");
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: executable,
    headless: true,
    extraPrefsFirefox: settings,
    env: { ...process.env, ...gpuEnvironment() },
    timeout: 120_000,
    // Software drivers compile for minutes; the test that opens a page has a limit.
    protocolTimeout: 0,
  });
  return { browser, close: () => browser.close() };
};
