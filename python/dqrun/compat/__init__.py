# SPDX-License-Identifier: Apache-2.0
"""The names of other packages, over dqrun."""
