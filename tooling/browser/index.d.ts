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

/** What tests use of a page, in Firefox as in Chromium. */
export interface ScriptedPage {
  evaluate<Given, Result>(work: (given: Given) => Result, given: Given): Promise<Awaited<Result>>;
}

/** A headless Firefox with a profile of its own, which computes with Mesa's driver as Node does. */
export interface OpenFirefox {
  readonly browser: { newPage(): Promise<ScriptedPage> };
  close(): Promise<void>;
}

/** Starts Firefox. Throws where the machine has none. */
export declare const openFirefox: () => Promise<OpenFirefox>;

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

export interface OpenedPage<P extends ScriptedPage = Page> {
  readonly page: P;
  /** What the page wrote on its console, and errors that it did not catch. */
  readonly messages: readonly string[];
}

/** Opens a page, and notes what it says. */
export declare const openPage: <P extends ScriptedPage = Page>(
  browser: { newPage(): Promise<P> },
  url: string,
) => Promise<OpenedPage<P>>;

/**
 * Bundles modules with the packages of this repository, read from their sources. Returns the files by path: an entry `x.ts` is `/x.js`.
 */
export declare const bundlePage: (
  entries: readonly string[],
) => Promise<Record<string, Uint8Array>>;

/** A task of a main thread. */
export interface PageTask {
  /** How long it lasted. */
  readonly milliseconds: number;
  /** How long it had a processor: less where others use the machine. */
  readonly computed: number;
}

/** The tasks of a page's main thread while something is done. */
export declare const tracePageTasks: (
  page: Page,
  use: () => Promise<void>,
) => Promise<readonly PageTask[]>;

/** Flags of Chromium that {@link memoryOf} needs. */
export declare const memoryFlags: readonly string[];

/** Bytes by their holder. */
export type HeldMemory = Readonly<Record<string, number>>;

/** What a page, its workers and the process that computes hold after garbage was collected. The page must be isolated from other origins. */
export declare const memoryOf: (
  browser: Pick<OpenBrowser, "gpuProcess">,
  page: Page,
) => Promise<HeldMemory>;

/** What is held for good. */
export interface MemoryGrowth {
  /** The least of the second third of the samples. */
  readonly held: number;
  /** How much more the least of the last third is. */
  readonly grown: number;
  /** Whether that is more than 1 %, and more than 64 KiB. */
  readonly isLeak: boolean;
}

/**
 * How what is held grew. The first third of the samples is left out, because caches fill there. The least of each other third is taken,
 * because logs of fixed length and garbage come and go.
 */
export declare const growthOf: (samples: readonly number[]) => MemoryGrowth;

/** A growth for people, such as `3,510 KiB, and later 2 KiB more`. */
export declare const growthText: (growth: MemoryGrowth) => string;

export interface WatchMemoryOptions {
  readonly minutes: number;
  /** Lets something run for some seconds, and says what is held then. */
  readonly sample: () => Promise<HeldMemory>;
}

/** How the memory of each holder grows while something runs. */
export declare const watchMemory: (
  options: WatchMemoryOptions,
) => Promise<Readonly<Record<string, MemoryGrowth>>>;
