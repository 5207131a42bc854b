// Which tests run where: the pure ones in parallel and first, then the ones that drive real browsers. Nothing is ever
// retried: a test that fails now and then is a finding.
import { defineConfig } from 'vitest/config';

const typescript = {
  enabled: true,
  only: true,
  tsconfig: './tsconfig.json',
  include: ['tests/types/**/*.test-d.ts'],
};

export default defineConfig({
  test: {
    retry: 0,
    maxWorkers: 2,
    passWithNoTests: false,
    projects: [
      { extends: true, test: { name: 'core', include: ['tests/core/**/*.test.ts'] } },
      { extends: true, test: { name: 'contract', include: ['tests/contract/*.fake.test.ts'] } },
      { extends: true, test: { name: 'types', include: [], typecheck: typescript } },
      {
        extends: true,
        test: {
          name: 'browser',
          include: [
            'tests/browser/**/*.test.ts',
            'tests/contract/*.chromium.test.ts',
            'tests/fault/*.chromium.test.ts',
            'tests/*.test.ts',
          ],
          pool: 'forks',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          env: { WDIO_LOG_LEVEL: 'silent' },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
