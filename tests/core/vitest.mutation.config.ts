// What the mutation run executes: the core's tests alone, with few random sequences, since it runs them for every mutant.
import { defineConfig } from 'vitest/config';

// biome-ignore lint/style/noDefaultExport: vitest reads a configuration from there
export default defineConfig({
  test: { include: ['tests/core/**/*.test.ts'], env: { RUNS: '40' }, retry: 0 },
});
