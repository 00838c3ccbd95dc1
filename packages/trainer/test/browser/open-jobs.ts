import { fileURLToPath } from "node:url";
import {
  type BrowserLane,
  bundlePage,
  type OpenBrowser,
  type OpenBrowserOptions,
  type OpenedPage,
  openBrowser,
  openFirefox,
  openPage,
  type ScriptedPage,
  type ServedPages,
  servePages,
} from "@halfstep/browser";
import type { Jobs } from "./pages/jobs.js";

/** The driver of this run's browser; that of Node is the same. */
const lane = process.env.HALFSTEP_BROWSER_LANE as BrowserLane;

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>jobs</title>
<link rel="icon" href="data:,">
<script type="module" src="page.js"></script>
</html>
`;

type Place = "inPage" | "inWorker";
type RunJob = (name: string, given: readonly unknown[]) => unknown;

/** A page that runs the jobs of `pages/jobs.ts`. */
export interface JobsPage {
  run<N extends keyof Jobs>(
    place: Place,
    name: N,
    ...given: Parameters<Jobs[N]>
  ): ReturnType<Jobs[N]>;
  /** What the page wrote on its console, and errors that it did not catch. */
  readonly messages: readonly string[];
  close(): Promise<void>;
}

/** Such a page in Chromium. */
export interface OpenJobs extends OpenBrowser, OpenedPage, Pick<JobsPage, "run"> {}

/** Opens the page in Chromium. */
export async function openJobs({
  flags = [],
}: Pick<OpenBrowserOptions, "flags"> = {}): Promise<OpenJobs> {
  const served = await serveJobs();
  const opened = await openBrowser({ lane, flags });
  const { page, messages } = await openPage(opened.browser, served.url);
  return {
    ...opened,
    page,
    messages,
    run: runnerOf(page),
    async close() {
      await opened.close();
      await served.close();
    },
  };
}

/** Opens the page in Firefox. */
export async function openJobsInFirefox(): Promise<JobsPage> {
  const served = await serveJobs();
  const opened = await openFirefox();
  const { page, messages } = await openPage(opened.browser, served.url);
  return {
    messages,
    run: runnerOf(page),
    async close() {
      await opened.close();
      await served.close();
    },
  };
}

async function serveJobs(): Promise<ServedPages> {
  const entry = (name: string): string =>
    fileURLToPath(new URL(`pages/${name}.ts`, import.meta.url));
  const files = await bundlePage([entry("page"), entry("worker")]);
  return servePages({ files: { ...files, "/index.html": html } });
}

function runnerOf(page: ScriptedPage): JobsPage["run"] {
  const run = (place: Place, name: string, ...given: readonly unknown[]): Promise<unknown> =>
    page.evaluate(
      (job) => (globalThis as unknown as Record<Place, RunJob>)[job.place](job.name, job.given),
      { place, name, given },
    );
  return run as JobsPage["run"];
}
