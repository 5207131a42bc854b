import type { ModelContext } from '../client/index.ts';

declare global {
  interface Document {
    readonly modelContext: ModelContext;
  }
  const webmcpRelay: typeof import('../client/token.ts');
}
