import type { ViteUserConfig } from "vitest/config";
export declare const unit: (test?: ViteUserConfig["test"]) => ViteUserConfig;
export declare const gpu: (test?: ViteUserConfig["test"]) => ViteUserConfig;
export declare const manyPrograms: (test?: ViteUserConfig["test"]) => ViteUserConfig;
export declare const manyNarrowPrograms: (test?: ViteUserConfig["test"]) => ViteUserConfig;
export declare const withoutOptimizations: Readonly<Record<string, string>>;
export declare const onBestTier: Readonly<Record<string, string>>;
