import { fileURLToPath } from "node:url";
import {
  type BrowserLane,
  bundlePage,
  type OpenBrowser,
  type OpenBrowserOptions,
  type OpenedPage,
  openBrowser,
  openPage,
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

/** A page in Chromium that runs the jobs of `pages/jobs.ts`. */
export interface OpenJobs extends OpenBrowser, OpenedPage {
  run<N extends keyof Jobs>(
    place: Place,
    name: N,
    ...given: Parameters<Jobs[N]>
  ): ReturnType<Jobs[N]>;
}

/** Opens such a page. */
export async function openJobs({
  flags = [],
}: Pick<OpenBrowserOptions, "flags"> = {}): Promise<OpenJobs> {
  const entry = (name: string): string =>
    fileURLToPath(new URL(`pages/${name}.ts`, import.meta.url));
  const files = await bundlePage([entry("page"), entry("worker")]);
  const served = await servePages({ files: { ...files, "/index.html": html } });
  const opened = await openBrowser({ lane, flags });
  const { page, messages } = await openPage(opened.browser, served.url);
  const run = (place: Place, name: string, ...given: readonly unknown[]): Promise<unknown> =>
    page.evaluate(
      (job) => (globalThis as unknown as Record<Place, RunJob>)[job.place](job.name, job.given),
      { place, name, given },
    );
  return {
    ...opened,
    page,
    messages,
    run: run as OpenJobs["run"],
    async close() {
      await opened.close();
      await served.close();
    },
  };
}
