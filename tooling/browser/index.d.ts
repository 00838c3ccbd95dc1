import type { Browser, Page } from "playwright-core";

/** A driver that Chromium computes with. Both compute on the CPU. */
export type BrowserLane =
  /** That of Chromium itself: no float16, subgroups of four. */
  | "swiftshader"
  /** Mesa's, as Node uses it: float16, subgroups of eight. Needs root and a C compiler. */
  | "lavapipe";

export interface OpenBrowserOptions {
  readonly lane?: BrowserLane;
  /** Further flags of Chromium. */
  readonly flags?: readonly string[];
}

/** A headless Chromium with a profile of its own. */
export interface OpenBrowser {
  readonly browser: Browser;
  /** The id of the process that computes; undefined while there is none. */
  gpuProcess(): Promise<number | undefined>;
  close(): Promise<void>;
}

/** Starts Chromium. Throws where the machine lacks what the lane needs. */
export declare const openBrowser: (options?: OpenBrowserOptions) => Promise<OpenBrowser>;

/** Why this machine cannot run the lane "lavapipe"; undefined where it can. */
export declare const whyNoLavapipe: () => string | undefined;

export interface ServePagesOptions {
  /** Files of this folder are served. */
  readonly folder?: string;
  /** Files by path, such as `/page.js`, besides those of the folder. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** A sub-path under which everything lies, such as `/docs/`. Default `/`. */
  readonly base?: string;
  /** Content security policy of every answer. Default {@link strictPolicy}. */
  readonly policy?: string;
}

export interface ServedPages {
  /** The address of the base, with a slash at its end. */
  readonly url: string;
  /** Paths that were asked for and do not exist. */
  readonly missing: readonly string[];
  close(): Promise<void>;
}

/** Serves files on a free port of this machine. */
export declare const servePages: (options: ServePagesOptions) => Promise<ServedPages>;

/** Everything from the same origin, WebAssembly, and no `unsafe-eval`. */
export declare const strictPolicy: string;

export interface OpenedPage {
  readonly page: Page;
  /** What the page wrote on its console, and errors that it did not catch. */
  readonly messages: readonly string[];
}

/** Opens a page, and notes what it says. */
export declare const openPage: (
  browser: Pick<Browser, "newPage">,
  url: string,
) => Promise<OpenedPage>;

/**
 * Bundles modules with the packages of this repository, read from their sources. Returns the files by path: an entry `x.ts` is `/x.js`.
 */
export declare const bundlePage: (
  entries: readonly string[],
) => Promise<Record<string, Uint8Array>>;
